"""Names that the other tables have no use for: constants by value, enumerations, the classes of the language."""
import numpy as np

import ref
from make import Arg, case

X = ref.ramp(4, 8)

case(
    "names_enums",
    "Enumerations have the documented members and numbers; the aliases of engines are members.",
    """
assert [nisa.engine.unknown.value, nisa.engine.tensor.value, nisa.engine.scalar.value] == [0, 1, 2]
assert [nisa.engine.gpsimd.value, nisa.engine.dma.value, nisa.engine.vector.value, nisa.engine.sync.value] == [3, 4, 5, 6]
assert nisa.tensor_engine == nisa.engine.tensor and nisa.gpsimd_engine == nisa.engine.gpsimd
assert nisa.unknown_engine == nisa.engine.unknown and nisa.scalar_engine != nisa.vector_engine
assert [nisa.reduce_cmd.idle.value, nisa.reduce_cmd.reset.value, nisa.reduce_cmd.reduce.value] == [0, 1, 2]
assert [nisa.reduce_cmd.reset_reduce.value, nisa.reduce_cmd.load_reduce.value] == [3, 4]
assert [nisa.dge_mode.unknown.value, nisa.dge_mode.swdge.value, nisa.dge_mode.hwdge.value, nisa.dge_mode.none.value] == [0, 1, 2, 3]
assert [nisa.oob_mode.error.value, nisa.oob_mode.skip.value] == [0, 1]
assert nisa.matmul_perf_mode.none != nisa.matmul_perf_mode.double_row
assert [nisa.nc_version.gen2.value, nisa.nc_version.gen3.value, nisa.nc_version.gen4.value] == [2, 3, 4]
assert [nisa.dma_engine.dma.value, nisa.dma_engine.gpsimd_dma.value] == [1, 2]
assert nisa.get_nc_version() == nisa.nc_version.gen3 and nisa.get_nc_sub_version() in (0, 1)
assert isinstance(nl.sbuf, nl.MemoryRegion) and isinstance(nl.float32, nl.DType)
t = fetch(x)
assert isinstance(t, nl.NkiTensor) and isinstance(nisa.register_alloc(1), nisa.VirtualRegister)
i = nisa.tensor_copy(dst=t, src=t, engine=nisa.engine.unknown)
assert isinstance(i, nisa.NkiInstruction)
return give(t)
""",
    {"x": Arg("float32", X)},
    [("float32", X)],
)
for target, sbuf in (("trn1", 192), ("trn2", 224), ("trn3", 256)):
    case(
        f"names_tile_size_{target}",
        f"nl.tile_size of {target}: {sbuf} KiB of SBUF in each of 128 partitions, PSUM in 8 banks of 2 KiB.",
        f"""
s = nl.tile_size
assert s.pmax == 128 and s.psum_num_banks == 8 and s.bn_stats_fmax == 512
assert s.psum_bank_fmax == 512 and s.psum_fmax == 512 and s.psum_bank_fmax_bytes == 2048
assert s.gemm_stationary_fmax == 128 and s.gemm_moving_fmax == 512
assert s.sbuf_fmax_bytes == {sbuf * 1024} and s.total_available_sbuf_size == {sbuf * 1024}
assert s.sbuf_fmax == {sbuf * 256} and s.sbuf_size_bytes == {sbuf * 1024 * 128}
assert s.psum_min_align >= 1 and s.sbuf_min_align >= 1
assert nl.tile_size.pmax == 128 and nl.tile_size.psum_fmax == nl.tile_size.psum_bank_fmax
assert nl.tile_size.psum_bank_fmax_bytes == nl.tile_size.psum_bank_fmax * 4
assert nl.tile_size.sbuf_size_bytes == nl.tile_size.pmax * nl.tile_size.sbuf_fmax_bytes
assert nl.tile_size.sbuf_fmax * 4 == nl.tile_size.sbuf_fmax_bytes == nl.tile_size.total_available_sbuf_size
assert nl.tile_size.psum_min_align == s.psum_min_align and nl.tile_size.sbuf_min_align == s.sbuf_min_align
return give(fetch(x))
""",
        {"x": Arg("float32", X)},
        [("float32", X)],
        target=target,
    )
case(
    "names_address",
    "A tensor with a manual address shows it; a size-1 dimension can be squeezed away.",
    """
t = nl.ndarray((4, 1, 8), dtype=nl.float32, buffer=nl.sbuf, address=(32, 64))
assert tuple(t.address) == (32, 64)
nisa.dma_copy(dst=t.squeeze_dim(1), src=x)
return give(t.squeeze_dim(1))
""",
    {"x": Arg("float32", X)},
    [("float32", X)],
)
case(
    "names_modes",
    "Defaults that are written out do what their absence does.",
    """
t, s = tile((4, 8), nl.float32), tile((4, 1), nl.float32)
nisa.dma_copy(dst=t, src=x, dge_mode=nisa.dge_mode.unknown, oob_mode=nisa.oob_mode.error)
y = tile((4, 8), nl.float32)
nisa.activation(dst=y, op=nl.copy, data=t, reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.reset)
nisa.activation(dst=y, op=nl.copy, data=t, reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.reduce)
nisa.activation(dst=y, op=nl.copy, data=t, reduce_cmd=nisa.reduce_cmd.idle)
nisa.activation(dst=y, op=nl.copy, data=t, reduce_op=nl.add, reduce_res=s, reduce_cmd=nisa.reduce_cmd.reduce)
return give(s)
""",
    {"x": Arg("float32", X)},
    [("float32", 2 * X.sum(1, keepdims=True))],
)
case(
    "names_prelu",
    "activate2 with prelu: the slope of the negative side is relu_param.",
    """
t, y = fetch(x), tile((4, 8), nl.float32)
nisa.activate2(dst=y, op=nl.prelu, data=t, imm0=1.0, imm1=-8.0, op0=nl.multiply, op1=nl.add, relu_param=0.25)
return give(y)
""",
    {"x": Arg("float32", X)},
    [("float32", np.where(X - 8 < 0, 0.25 * (X - 8), X - 8))],
    target="trn3",
)
