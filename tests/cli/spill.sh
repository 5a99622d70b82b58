# --spill: what does not fit in SBUF goes to HBM and back, and the results stay.
. "$ROOT/tests/cli/lib.sh"
cat >sums.nki <<'END'
import nki
import nki.isa as nisa
import nki.language as nl


def part(out, x, c0, c1):
    n, rows, _ = x.shape
    tiles = []
    for i in range(n):
        t = nl.ndarray((rows, c1 - c0), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[i, :, c0:c1])
        tiles.append(t)
    for _ in nl.dynamic_range(0, 3):
        nisa.tensor_scalar(dst=tiles[0], data=tiles[0], op0=nl.add, operand0=1.0)
    for _ in range(2):
        for i in range(1, n):
            nisa.tensor_tensor(dst=tiles[i], data1=tiles[i], data2=tiles[i - 1], op=nl.add)
    for i in range(n):
        nisa.dma_copy(dst=out[n - 1 - i, :, c0:c1], src=tiles[i])


@nki.jit
def whole(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    part(out, x, 0, x.shape[2])
    return out


@nki.jit
def pieces(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for c in range(0, x.shape[2], 1024):
        part(out, x, c, c + 1024)
    return out


@nki.jit
def held(x):
    n, rows, cols = x.shape
    tiles = [nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.sbuf) for _ in range(n)]
    for i in range(n):
        nisa.dma_copy(dst=tiles[i], src=x[i, :, :])
    for _ in nl.dynamic_range(0, 3):  # needs all of them
        for i in range(1, n):
            nisa.tensor_tensor(dst=tiles[i], data1=tiles[i], data2=tiles[i - 1], op=nl.add)
    out = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tiles[n - 1])
    return out
END
x='x=float32[9,4,8192]:randn'
check 1 '' '*error\[sbuf_full\]*' "$NKI" run sums.nki::whole "$x"
check 0 '1 outputs agree*' '' "$NKI" diff sums.nki::whole sums.nki::pieces "$x" --spill --verify --rtol 0 --atol 0
check 0 '1 outputs agree*' '' "$NKI" diff sums.nki::whole sums.nki::pieces "$x" --spill --verify --schedule=list \
    --rtol 0 --atol 0
check 0 '*
spills stores=* loads=* bytes=*' '' "$NKI" check sums.nki::whole "$x" --spill --dump=sched
a=$("$NKI" run sums.nki::whole "$x" --spill)
same "$a" "$("$NKI" run sums.nki::whole "$x" --spill --order 1)"
same "$a" "$("$NKI" run sums.nki::whole "$x" --spill --schedule=list --order 2)"
# The message is that of the program as written; what fits is left alone.
check 1 '' '*error\[sbuf_full\]*' "$NKI" run sums.nki::held "$x" --spill
same "$("$NKI" run sums.nki::held "$x" 2>&1)" "$("$NKI" run sums.nki::held "$x" --spill 2>&1)"
same "$("$NKI" check sums.nki::pieces "$x" --dump=sched)" "$("$NKI" check sums.nki::pieces "$x" --spill --dump=sched)"
"$NKI" compile sums.nki::whole "$x" --spill -o 1.neff && "$NKI" compile sums.nki::whole "$x" --spill -o 2.neff && cmp 1.neff 2.neff ||
    failed=1
same "$a" "$("$NKI" run 1.neff "$x")"
done_testing
