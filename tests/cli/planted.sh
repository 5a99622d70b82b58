# The run-time checks find what is planted in a copy of each example, and nothing in the example itself.
#
# A row: the example, the kind of bug, where, the finding, and values that bring it out (else those of the
# example's `# try:` line).
#
#   drop WHAT      nothing is copied or filled where WHAT is the destination: a store, a load, a memset
#   short WHAT     the copy to WHAT is one row short on both sides
#   narrow WHAT    WHAT becomes int8
#   barrier -      the core_barrier is gone
. "$ROOT/tests/cli/lib.sh"

plant() { # KIND WHAT FILE
    case $1 in
    drop) sed "s/nisa\.\(dma_copy\|dma_transpose\|memset\)(dst=$2\b/dropped(dst=$2/" "$3" ;;
    short) sed "s/nisa\.dma_copy(dst=$2\b/short(dst=$2/" "$3" ;;
    narrow) sed "/^ *$2 = nl\.ndarray(/s/dtype=[a-z_0-9.]*/dtype=nl.int8/" "$3" ;;
    barrier) sed 's/nisa\.core_barrier(/dropped(/' "$3" ;;
    esac
    cat <<'TEXT'


def dropped(*args, **kwargs):
    pass


def short(dst, src):
    n = dst.shape[0] - 1
    nisa.dma_copy(dst=dst[0:n], src=src[0:n])
TEXT
}

row() { # EXAMPLE KIND WHAT FINDING [VALUES...]
    example=$ROOT/examples/$1.nki kind=$2 what=$3 finding=$4
    shift 4
    plant "$kind" "$what" "$example" >planted.nki
    cmp -s "$example" planted.nki && { failed=1; echo "FAILED: $example: $kind $what changes nothing"; }
    check 1 '*' "*warning\[$finding\]: *" "$NKI" run -q --check planted.nki "$@"
}

for example in "$ROOT"/examples/*.nki; do
    check 0 '' '*' "$NKI" run -q --check -Wno-dma_transpose_large "$example"
    same '' "$got_err"
    for kind in drop short narrow; do
        grep -q "^row $(basename "$example" .nki) $kind " "$0" || { failed=1; echo "FAILED: no $kind in $example"; }
    done
done

large='randn(0,1000)'
row avgpool drop pixels uninit_read
row avgpool drop pooled output_partial
row avgpool short pixels uninit_read
row avgpool narrow means int_lost "image=float32[40,12,18]:$large" size=3
row conv1d drop y output_partial
row conv1d drop samples uninit_read
row conv1d short kernel uninit_read
row conv1d narrow result int_lost "x=float32[50,70]:$large" "weight=float32[4,50,40]:randn"
row cumsum drop sums output_partial
row cumsum drop carry uninit_read
row cumsum short data uninit_read
row cumsum narrow data int_lost "x=float32[150,500]:$large"
row dropout_rng drop y output_partial
row dropout_rng drop data uninit_read
row dropout_rng short y output_partial
row dropout_rng narrow data int_lost "x=float32[150,256]:$large" 'seed=uint32[1,1]:full(7)' probability=0.25
row dynamic_loop drop result output_partial
row dynamic_loop drop block uninit_read
row dynamic_loop drop total uninit_read
row dynamic_loop short block uninit_read
row dynamic_loop narrow block int_lost "x=float32[5,100,64]:$large" 'count=int32[1,1]:full(3)'
row flash_attention drop out output_partial
row flash_attention drop total uninit_read
row flash_attention short v_tile uninit_read
row flash_attention narrow result int_lost 'q=float32[64,128]:randn' 'k=float32[64,128]:randn' "v=float32[128,64]:$large"
row gather_scatter drop result output_partial
row gather_scatter drop to_tile uninit_read
row gather_scatter short from_tile uninit_read
row gather_scatter narrow rows int_lost "table=float32[300,48]:$large" 'source=int32[40,1]:randint(0,300)' 'to=int32[40,1]:arange' height=50
row layernorm drop y output_partial
row layernorm drop eps_tile uninit_read
row layernorm short data uninit_read
row layernorm narrow data int_lost "x=float32[200,300]:$large" 'gamma=float32[300]:randn' 'beta=float32[300]:randn'
row mamba_scan drop y output_partial
row mamba_scan drop total uninit_read
row mamba_scan short tile uninit_read
row mamba_scan narrow total int_lost 'delta=float32[50,20]:rand(0.01,0.2)' "x=float32[50,20]:$large" 'a=float32[50,4]:rand(-2,-0.5)' 'b=float32[4,20]:randn' 'c_out=float32[4,20]:randn'
row matmul_1_naive drop product output_partial
row matmul_1_naive drop rhs_tile uninit_read
row matmul_1_naive short lhs_tile uninit_read
row matmul_1_naive narrow result int_lost "lhs_t=float32[64,96]:$large" 'rhs=float32[64,200]:randn'
row matmul_2_tiled drop product output_partial
row matmul_2_tiled drop left uninit_read
row matmul_2_tiled short product output_partial
row matmul_2_tiled narrow result int_lost "lhs_t=float32[64,96]:$large" 'rhs=float32[64,200]:randn'
row matmul_3_hoisted drop product output_partial
row matmul_3_hoisted drop tile uninit_read
row matmul_3_hoisted short right uninit_read
row matmul_3_hoisted narrow result int_lost "lhs_t=float32[64,96]:$large" 'rhs=float32[64,200]:randn'
row matmul_4_blocked drop place output_partial
row matmul_4_blocked drop right uninit_read
row matmul_4_blocked short left uninit_read
row matmul_4_blocked narrow result int_lost "lhs_t=float32[64,96]:$large" 'rhs=float32[64,200]:randn'
row matmul_5_double_buffered drop left uninit_read
row matmul_5_double_buffered short right uninit_read
row matmul_5_double_buffered narrow result int_lost "lhs_t=float32[64,96]:$large" 'rhs=float32[64,200]:randn'
row maxpool drop pooled output_partial
row maxpool drop pixels uninit_read
row maxpool short pooled output_partial
row maxpool narrow best int_lost "image=float32[40,13,17]:$large" size=3 stride=2
row quantize_int8 drop codes output_partial
row quantize_int8 drop data uninit_read
row quantize_int8 short scales output_partial
row quantize_int8 narrow data int_lost "x=float32[150,40]:$large"
row rmsnorm drop y output_partial
row rmsnorm drop weight uninit_read
row rmsnorm short data uninit_read
row rmsnorm narrow data int_lost "x=float32[150,40]:$large" 'gamma=float32[40]:randn'
row rope drop y output_partial
row rope drop cos_t uninit_read
row rope short data uninit_read
row rope narrow data int_lost "x=float32[150,4,32]:$large" 'cos=float32[150,16]:rand(-1,1)' 'sin=float32[150,16]:rand(-1,1)'
row softmax drop y output_partial
row softmax drop data uninit_read
row softmax short y output_partial
row softmax narrow data int_lost "x=float32[150,40]:$large"
row topk drop indices output_partial
row topk drop data uninit_read
row topk short values output_partial
row topk narrow data int_lost "x=float32[150,40]:$large" k=16
row transpose_2d drop flipped output_partial
row transpose_2d drop slab uninit_read
row transpose_2d short slab uninit_read
row transpose_2d narrow out int_lost "x=float32[150,40]:$large"
row transpose_dma drop flipped output_partial
row transpose_dma drop turned uninit_read
row transpose_dma short flipped output_partial
row transpose_dma narrow flipped int_lost "x=bfloat16[48,100]:$large"
row two_cores barrier - core_race
row two_cores drop centred uninit_read
row two_cores drop y output_partial
row two_cores short data uninit_read
row two_cores narrow result int_lost "x=float32[64,40]:$large" --grid 2
row vector_add drop total output_partial
row vector_add drop b_tile uninit_read
row vector_add short a_tile uninit_read
row vector_add narrow a_tile int_lost "a=float32[300,40]:$large" 'b=float32[300,40]:randn'
done_testing
