# The clock follows what depends on data: by --trip, by a run, or it says what it needs. A container and
# its source take the same time. Two cores wait for each other.
. "$ROOT/tests/cli/lib.sh"
cat >k.nki <<'EOF'
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def halves(x, n):
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    left = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=n)
    reg = nisa.register_alloc()
    nisa.register_load(dst=reg, src=left)
    while reg:
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=0.5)
        nisa.tensor_scalar(dst=left, data=left, op0=nl.subtract, operand0=1)
        nisa.register_load(dst=reg, src=left)
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    return out


@nki.jit
def nested(x, n):
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    outer = nisa.register_alloc()
    nisa.register_load(dst=outer, src=n[0:1, 0:1])
    inner = nisa.register_alloc()
    nisa.register_load(dst=inner, src=n[0:1, 1:2])

    def once(j):
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=0.5)

    def each(i):
        nl.fori_loop(0, inner, once)
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=0.5)

    nl.fori_loop(0, outer, each)
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    return out


@nki.jit
def gather(x, rows):
    t = nl.ndarray((128, 4096), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=0.0)
    index = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=rows)
    nisa.dma_copy(dst=t, src=x.ap(pattern=[[4096, 128], [1, 4096]], vector_offset=index, indirect_dim=0),
                  oob_mode=nisa.oob_mode.skip)
    out = nl.ndarray((128, 4096), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    return out


@nki.jit
def exchange(x, late):
    me = nl.program_id(0)
    t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    u = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    for i in range(late if me == 1 else 0):
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=1.0)
    nisa.sendrecv(src=t, dst=u, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0)
    out = nl.ndarray((2, 128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out[me], src=u)
    nisa.core_barrier(out, (0, 1))
    return out
EOF
# field NAME words...: a number of the summary.
field() {
    name=$1
    shift
    "$NKI" profile "$@" --json - 2>.err | sed -n "s/^    \"$name\": \([0-9.]*\),*$/\1/p" | head -1
}
body() { field body_time_ns "$@"; }
# more A B: A > B.
more() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && a > b) }' || { failed=1; echo "FAILED: $1 is not more than $2"; }
}
shape='x=float32[128,64]' some='n=int32[1,1]' pair='n=int32[1,2]' wide='x=float32[128,4096]:ones'
check 1 '' '*k.nki:14:11: error\[trip_unknown\]: how often this while loop runs depends on data; give --trip 14=N, or data for every tensor*' \
    "$NKI" profile k.nki::halves $shape $some
check 1 '' '*error\[trip_unknown\]: how often this loop runs*' "$NKI" profile k.nki::nested $shape $pair
five=$(body k.nki::halves $shape:ones "$some:full(5)")
same "$(body k.nki::halves $shape $some --trip 14=5)" "$five"
more "$(body k.nki::halves $shape:ones "$some:full(6)")" "$five"
more "$(body k.nki::halves $shape:ones "$some:full(1)")" "$(body k.nki::halves $shape:ones $some:zeros)"
# --trip says more than data.
same "$(body k.nki::halves $shape $some --trip 14=2)" "$(body k.nki::halves $shape:ones "$some:full(5)" --trip 14=2)"
few=$(field executed_instruction_count k.nki::nested $shape:ones $pair:zeros)
more "$(field executed_instruction_count k.nki::nested $shape:ones "$pair:full(3)")" "$few"
# Skipped rows are not moved.
all=$(field dma_transfer_total_bytes k.nki::gather $wide 'rows=int32[128,1]:zeros')
none=$(field dma_transfer_total_bytes k.nki::gather $wide 'rows=int32[128,1]:full(200)')
same $((128 * 16384)) $((all - none))
more "$(body k.nki::gather $wide 'rows=int32[128,1]:zeros')" "$(body k.nki::gather $wide 'rows=int32[128,1]:full(200)')"
# A core that comes late makes the other wait.
soon=$(body k.nki::exchange 'x=float32[128,512]' late=0 --grid 2)
more "$(body k.nki::exchange 'x=float32[128,512]' late=40 --grid 2)" "$soon"
more "$(body k.nki::exchange 'x=float32[128,512]' late=0 --grid 2 --machine core_barrier_ns=2000)" "$soon"
# The container holds what is timed.
"$NKI" compile k.nki::halves $shape $some -o h.neff >/dev/null 2>&1 || failed=1
same "$(body k.nki::halves $shape $some --trip r0=7)" "$(body h.neff --trip r0=7)"
check 1 '' '*error\[trip_unknown\]: *--trip *' "$NKI" profile h.neff
attn=$ROOT/examples/flash_attention.nki
"$NKI" compile "$attn" -o f.neff $(sed -n 's/^# try: //p' "$attn") >/dev/null 2>&1 || failed=1
same "$(body "$attn")" "$(body f.neff)"
done_testing
