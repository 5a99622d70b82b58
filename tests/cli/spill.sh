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
        t = nl.ndarray((rows, c1 - c0), dtype=x.dtype, buffer=nl.sbuf, name=f"tile{i}")
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


def chain(out, x, c0, c1):
    n, rows, _ = x.shape
    cols = c1 - c0
    tiles = [nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.sbuf) for _ in range(n)]
    for i in range(n):
        nisa.dma_copy(dst=tiles[i], src=x[i, :, c0:c1])
    for _ in nl.dynamic_range(0, 3):  # needs all of them
        for i in range(1, n):
            nisa.tensor_tensor(dst=tiles[i], data1=tiles[i], data2=tiles[i - 1], op=nl.add)
    nisa.dma_copy(dst=out[:, c0:c1], src=tiles[n - 1])


@nki.jit
def held(x):
    out = nl.ndarray(x.shape[1:], dtype=x.dtype, buffer=nl.shared_hbm)
    chain(out, x, 0, x.shape[2])
    return out


@nki.jit
def held_pieces(x):
    out = nl.ndarray(x.shape[1:], dtype=x.dtype, buffer=nl.shared_hbm)
    for c in range(0, x.shape[2], 1024):
        chain(out, x, c, c + 1024)
    return out


@nki.jit
def too_large(x):
    a = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    b = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=a, src=x)
    nisa.tensor_copy(dst=b, src=a)
    nisa.dma_copy(dst=out, src=b)
    return out
END
x='x=float32[9,4,8192]:randn'
check 1 '' '*error\[sbuf_full\]*help: --spill makes it fit: it moves * tensors to HBM and back*' "$NKI" run sums.nki::whole "$x"
check 0 '1 outputs agree*' '' \
    "$NKI" diff sums.nki::whole sums.nki::pieces "$x" --spill --verify --rtol 0 --atol 0
check 0 '1 outputs agree*' '' "$NKI" diff sums.nki::whole sums.nki::pieces "$x" --spill --verify --schedule=list \
    --rtol 0 --atol 0
check 0 '*
spills stores=* loads=* bytes=*' '' "$NKI" check sums.nki::whole "$x" --spill --dump=sched
a=$("$NKI" run sums.nki::whole "$x" --spill)
same "$a" "$("$NKI" run sums.nki::whole "$x" --spill --order 1)"
same "$a" "$("$NKI" run sums.nki::whole "$x" --spill --schedule=list --order 2)"
# A loop that uses more than SBUF has is opened; what one instruction uses has to fit.
check 0 '1 outputs agree*' '' "$NKI" diff sums.nki::held sums.nki::held_pieces "$x" --spill --verify --rtol 0 --atol 0
check 0 '1 outputs agree*' '' "$NKI" diff sums.nki::held sums.nki::held_pieces "$x" --spill --verify --schedule=list \
    --rtol 0 --atol 0
same "$("$NKI" run sums.nki::held "$x" --spill)" "$("$NKI" run sums.nki::held "$x" --spill --order 3)"
check 1 '' '*error\[sbuf_full\]*note: tensor_copy uses * bytes of each partition at once, so --spill cannot help*help: smaller tiles*' \
    "$NKI" run sums.nki::too_large 'x=float32[4,30000]:ones' --spill
check 0 '*spills stores=* loads=* bytes=*' '' sh -c "'$NKI' compile sums.nki::whole '$x' --spill -o 0.neff && '$NKI' inspect 0.neff"
line='  spilled tile[0-8] float32?4, 8192?, 131072 bytes (sums.nki:10), stored 1 time, loaded 1 time'
check 0 '' "3.neff: * bytes
$line*" "$NKI" compile sums.nki::whole "$x" --spill -v -o 3.neff
check 0 "*spills stores=*
$line
*" '' "$NKI" inspect 3.neff
check 0 '*SBUF was full: * moved: tile[0-8] float32?4, 8192?, 131072 bytes (sums.nki:10), stored 1 time, loaded 1 time; *' '' "$NKI" profile sums.nki::whole "$x" --spill
check 0 '' '4.neff: * bytes' "$NKI" compile sums.nki::pieces "$x" --spill -v -o 4.neff
# What fits is left alone.
same "$("$NKI" check sums.nki::pieces "$x" --dump=sched)" "$("$NKI" check sums.nki::pieces "$x" --spill --dump=sched)"
"$NKI" compile sums.nki::whole "$x" --spill -q -o 1.neff && "$NKI" compile sums.nki::whole "$x" --spill -q -o 2.neff && cmp 1.neff 2.neff ||
    failed=1
same "$a" "$("$NKI" run 1.neff "$x")"
done_testing
