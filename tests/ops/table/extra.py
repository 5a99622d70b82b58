"""What public kernels use beyond the other tables: packed formats, older spellings, corners of addressing."""
import numpy as np

import ref
from make import Arg, Out, case

X = ref.ramp(6, 4)
case(
    "mutable_tensor",
    "An argument annotated as mutable is written in place and returned.",
    """
t = fetch(x)
nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
nisa.dma_copy(dst=x, src=t)
return x
""",
    {"x": Arg("float32", X)},
    [Out("float32", 2 * X), Out("float32", 2 * X, name="x")],
    types={"x": "nt.mutable_tensor"},
)
case(
    "dst_positional",
    "dst and the operands by position, as many kernels write them.",
    """
t = tile(x.shape, nl.float32)
nisa.tensor_copy(t, fetch(x))
nisa.tensor_tensor(t, t, t, nl.add)
nisa.memset(t[:, 0:1], 5.0)
nisa.tensor_scalar(t, t, nl.multiply, 2.0)
return give(t)
""",
    {"x": Arg("float32", X)},
    [("float32", np.where(np.arange(4) == 0, 10.0, 4 * X))],
)
case(
    "range_as_index",
    "A range object as an index takes that many elements from its start.",
    """
t = tile((3, 2), nl.float32)
nisa.dma_copy(dst=t, src=x[nl.affine_range(3), nl.affine_range(2)])
return give(t)
""",
    {"x": Arg("float32", X)},
    [("float32", X[:3, :2])],
)
case(
    "onezero_flags",
    "The flags for operands of ones and zeros change no result.",
    """
p = bank((4, 4))
nisa.nc_matmul(dst=p, stationary=fetch(x), moving=fetch(m), is_moving_onezero=True)
y = tile((4, 4), nl.float32)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
    {"x": Arg("float32", X), "m": Arg("float32", (X % 2))},
    [("float32", X.T @ (X % 2))],
)
case(
    "broadcast_by_ones",
    "A row to every lane by the Tensor engine: a product with a column of ones.",
    """
ones = tile((1, 5), nl.float32)
nisa.memset(dst=ones, value=1.0)
p = bank((5, 4))
nisa.nc_matmul(dst=p, stationary=ones, moving=fetch(x)[0:1, :])
y = tile((5, 4), nl.float32)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
    {"x": Arg("float32", X + 1)},
    [("float32", np.tile(X[0] + 1, (5, 1)))],
)
case(
    "cumsum_by_triangle",
    "A running sum over the lanes: a product with a triangle that affine_select makes.",
    """
tri = tile((6, 6), nl.float32)
nisa.memset(dst=tri, value=1.0)
nisa.affine_select(dst=tri, pattern=[[1, 6]], channel_multiplier=-1, on_true_tile=tri, on_false_value=0.0, cmp_op=nl.greater_equal)
p = bank((6, 4))
nisa.nc_matmul(dst=p, stationary=tri, moving=fetch(x))
y = tile((6, 4), nl.float32)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
    {"x": Arg("float32", X)},
    [("float32", np.cumsum(X, 0))],
)
case(
    "scalar_offset_skip",
    "A block address past the end is skipped row by row; what exists is moved.",
    """
y = tile((3, 4), nl.float32)
nisa.memset(dst=y, value=-1.0)
nisa.dma_copy(dst=y, src=x.ap(pattern=[[4, 3], [1, 4]], scalar_offset=fetch(b), indirect_dim=0), oob_mode=nisa.oob_mode.skip)
return give(y)
""",
    {"x": Arg("float32", X), "b": Arg("int32", [[4]])},
    [("float32", np.concatenate([X[4:], np.full((1, 4), -1.0)]))],
)
case(
    "iota_then_gather",
    "Indices that the kernel makes itself: every second row, by iota and a gather.",
    """
i = tile((3, 1), nl.int32)
nisa.iota(dst=i, pattern=[[0, 1]], offset=1, channel_multiplier=2)
y = tile((3, 4), nl.float32)
nisa.dma_copy(dst=y, src=x.ap(pattern=[[4, 3], [1, 4]], vector_offset=i, indirect_dim=0))
return give(y)
""",
    {"x": Arg("float32", X)},
    [("float32", X[1::2])],
)
case(
    "argmax",
    "The place of a row's maximum by max8 and nc_find_index8.",
    """
x_t = fetch(x)
m, i = tile((2, 8), nl.float32), tile((2, 8), nl.uint32)
nisa.max8(dst=m, src=x_t)
nisa.nc_find_index8(dst=i, data=x_t, vals=m)
r = tile((2, 1), nl.int32)
nisa.tensor_copy(dst=r, src=i[:, 0:1])
return give(r)
""",
    {"x": Arg("float32", [[1.0, 9, 3, 4, 5, 6, 7, 8], [0, 0, 0, 0, 0, 0, 2, 0]])},
    [("int32", [[1], [6]])],
)
case(
    "one_hot",
    "One-hot rows: iota compared with a number for each lane.",
    """
n = tile((3, 5), nl.float32)
nisa.iota(dst=n, pattern=[[1, 5]])
nisa.tensor_scalar(dst=n, data=n, op0=nl.equal, operand0=fetch(i))
return give(n)
""",
    {"i": Arg("float32", [[2.0], [0.0], [4.0]])},
    [("float32", np.eye(5)[[2, 0, 4]])],
)
case(
    "float_bits_trick",
    "Arithmetic on a float's bits: its exponent, by a shift and a mask.",
    """
e = tile((1, 4), nl.int32)
nisa.tensor_scalar(dst=e, data=fetch(x).view(nl.int32), op0=nl.right_shift, operand0=23, op1=nl.bitwise_and, operand1=255)
nisa.tensor_scalar(dst=e, data=e, op0=nl.subtract, operand0=127.0)
return give(e)
""",
    {"x": Arg("float32", [[1.0, -8.5, 0.25, 3.875]])},
    [("int32", [[0, 3, -2, 1]])],
)

def xorshift(v):
    for _ in range(8):
        v ^= v << 13 & 0xFFFFFFFF
        v ^= v >> 17
        v ^= v << 5 & 0xFFFFFFFF
    return v


case(
    "xorshift32",
    "A random generator by hand: exact 32-bit shifts and xors, eight steps.",
    """
s, t = fetch(x), tile(x.shape, nl.uint32)
for _ in range(8):
    for op, by in ((nl.left_shift, 13), (nl.right_shift, 17), (nl.left_shift, 5)):
        nisa.tensor_scalar(dst=t, data=s, op0=op, operand0=by)
        nisa.tensor_tensor(dst=s, data1=s, data2=t, op=nl.bitwise_xor)
return give(s)
""",
    {"x": Arg("uint32", [[1, 2463534242, 0xFFFFFFFF]])},
    [("uint32", [[xorshift(v) for v in (1, 2463534242, 0xFFFFFFFF)]])],
)


# MX: a group is 8 lanes by 4 neighbouring elements; its scale is the power of two that brings its maximum into the top binade.
rng = np.random.RandomState(81)
M = ref.round_float(rng.standard_normal((32, 8)) * np.exp2(rng.randint(-6, 7, (32, 8))), "bfloat16")


def mx_values(x):
    """What quantisation to fp8 e4m3fn with shared scales leaves of x, and the scale bytes by group."""
    out, scale = np.zeros_like(x), np.zeros((x.shape[0] // 8, x.shape[1] // 4))
    for g in range(x.shape[0] // 8):
        for j in range(x.shape[1] // 4):
            part = x[8 * g : 8 * g + 8, 4 * j : 4 * j + 4]
            s = 2.0 ** (np.floor(np.log2(np.abs(part).max())) - 7)
            out[8 * g : 8 * g + 8, 4 * j : 4 * j + 4] = ref.round_float(part / s, "float8_e4m3fn") * s
            scale[g, j] = np.log2(s) + 127
    return out, scale


A, _ = mx_values(M)
case(
    "mx_quantize_matmul",
    "quantize_mx and nc_matmul_mx (trn3): fp8 with shared scales; the product is of the quantised values.",
    """
x_t = fetch(x)
q, s = tile((32, 2), nl.float8_e4m3fn_x4), tile((32, 2), nl.uint8)
nisa.quantize_mx(dst=q, src=x_t, dst_scale=s)
p = bank((2, 2))
nisa.nc_matmul_mx(dst=p, stationary=q, moving=q, stationary_scale=s, moving_scale=s)
y = tile((2, 2), nl.float32)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
    {"x": Arg("bfloat16", M)},
    [Out("float32", np.einsum("pmj,pnj->mn", A.reshape(32, 2, 4), A.reshape(32, 2, 4)), rtol=2e-6)],
    target="trn3",
)
case(
    "nl_program_shape",
    "Without a grid: program 0 of 1.",
    """
assert nl.num_programs(axes=0) == 1 and nl.program_id(axis=0) == 0
t = nl.load(x)
return give(nl.copy(t) if nl.num_programs(0) == 1 else t)
""",
    {"x": Arg("float32", X)},
    [("float32", X)],
)
case(
    "psum_bank_halves",
    "Two products in the two halves of one bank; one copy moves both.",
    """
p = bank((4, 8))
x_t = fetch(x)
nisa.nc_matmul(dst=p[:, 0:4], stationary=x_t, moving=x_t)
nisa.nc_matmul(dst=p[:, 4:8], stationary=x_t[0:3, :], moving=x_t[0:3, :])
y = tile((4, 8), nl.float32)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
    {"x": Arg("float32", X)},
    [("float32", np.concatenate([X.T @ X, X[:3].T @ X[:3]], 1))],
)
case(
    "psum_eight_banks",
    "All eight banks open at once.",
    """
x_t = fetch(x)
banks = [bank((4, 4)) for _ in range(nl.tile_size.psum_num_banks)]
for k in range(2):
    for i, p in enumerate(banks):
        nisa.nc_matmul(dst=p, stationary=x_t, moving=x_t)
y = tile((4, 4), nl.float32)
nisa.tensor_copy(dst=y, src=banks[0])
for p in banks[1:]:
    nisa.tensor_tensor(dst=y, data1=y, data2=p, op=nl.add)
return give(y)
""",
    {"x": Arg("float32", X)},
    [("float32", 16 * (X.T @ X))],
)
case(
    "rand2_range",
    "rand2 (trn3) stays between its bounds and is not constant.",
    """
r = tile((4, 64), nl.float32)
nisa.rand2(dst=r, min=2.0, max=3.0)
inside = tile((4, 64), nl.float32)
nisa.tensor_scalar(dst=inside, data=r, op0=nl.maximum, operand0=2.0, op1=nl.minimum, operand1=3.0)
nisa.tensor_tensor(dst=inside, data1=inside, data2=r, op=nl.equal)
top, low = tile((4, 1), nl.float32), tile((4, 1), nl.float32)
nisa.tensor_reduce(dst=top, op=nl.maximum, data=r, axis=1)
nisa.tensor_reduce(dst=low, op=nl.minimum, data=r, axis=1)
nisa.tensor_tensor(dst=top, data1=top, data2=low, op=nl.greater)
return give(inside), give(top)
""",
    {},
    [("float32", np.ones((4, 64))), ("float32", np.ones((4, 1)))],
    target="trn3",
)
case(
    "nl_rand_range",
    "nl.rand: numbers in [0, 1), not all the same.",
    """
r = nl.rand((4, 64), dtype=nl.float32)
inside = nl.multiply(nl.greater_equal(r, 0.0), nl.less(r, 1.0))
spread = nl.greater(nl.max(r, axis=1, keepdims=True), nl.min(r, axis=1, keepdims=True))
return give(inside), give(spread)
""",
    {},
    [("float32", np.ones((4, 64))), ("float32", np.ones((4, 1)))],
    target="trn3",
)
case(
    "nl_cast",
    "nl.cast converts a tile's type.",
    """
t = nl.cast(nl.load(x), dtype=nl.int8)
assert t.dtype == nl.int8
return give(t)
""",
    {"x": Arg("float32", [[1.5, 2.5, -3.5, 300.0, -300.0, 0.25]])},
    [("int8", [[2, 2, -4, 127, -128, 0]])],
)
case(
    "nl_range_and_ndim",
    "nl.range loops like range; without a grid there are no program dimensions.",
    """
assert nl.program_ndim() == 0
assert nisa.get_nc_sub_version() in (0, 1)
t = nl.zeros((1, 4), dtype=nl.int32, buffer=nl.sbuf)
for i in nl.range(4):
    nisa.memset(dst=t[:, i : i + 1], value=i * i)
return give(t)
""",
    {},
    [("int32", [[0, 1, 4, 9]])],
)
N, D = np.array([[7.0, -7.0, 7.0, -7.0, 1.0, 9.0]]), np.array([[2.0, 2.0, -2.0, -2.0, 4.0, 3.0]])
case(
    "nl_divide",
    "nl.divide of two tiles and by a number.",
    """
x_t, y_t = nl.load(x), nl.load(y)
return give(nl.divide(x_t, y_t)), give(nl.divide(x_t, 4.0))
""",
    {"x": Arg("float32", N), "y": Arg("float32", D)},
    [Out("float32", N / D, rtol=1.2e-7), Out("float32", N / 4, rtol=1.2e-7)],
)
case(
    "nl_mod_fmod",
    "mod takes the divisor's sign, fmod the dividend's.",
    """
x_t, y_t = nl.load(x), nl.load(y)
return give(nl.mod(x_t, y_t)), give(nl.fmod(x_t, y_t))
""",
    {"x": Arg("float32", N), "y": Arg("float32", D)},
    [("float32", np.mod(N, D)), ("float32", np.fmod(N, D))],
)
case(
    "partition_reduce_average",
    "tensor_partition_reduce can average the lanes.",
    """
y = tile((1, 4), nl.float32)
nisa.tensor_partition_reduce(dst=y, op=nl.average, data=fetch(x))
return give(y)
""",
    {"x": Arg("float32", X[:4])},
    [("float32", X[:4].mean(0, keepdims=True))],
)
ref.FLOATS["tfloat32"] = (10, 127, 3.4011621342146535e38, "inf")
TF = ref.round_float([[1 / 3, 1.0 + 2.0**-11, 1.0 + 3 * 2.0**-11, 2.0**-130, -7.1]], "float32")
case(
    "convert_tfloat32",
    "tfloat32 has 10 fraction bits in a 32-bit word.",
    """
y = tile(x.shape, nl.tfloat32)
nisa.tensor_copy(dst=y, src=fetch(x))
z = tile(x.shape, nl.float32)
nisa.tensor_copy(dst=z, src=y)
return give(z)
""",
    {"x": Arg("float32", TF)},
    [("float32", ref.round_float(TF, "tfloat32"))],
)
case(
    "random_state",
    "The GpSimd generator's state can be written, and read back as it was.",
    """
s, r = fetch(x), tile((4, 6), nl.uint32)
nisa.rand_set_state(src_seeds=s, engine=nisa.engine.gpsimd)
nisa.rand_get_state(dst=r, engine=nisa.engine.gpsimd)
return give(r)
""",
    {"x": Arg("uint32", ref.ramp(4, 6, start=1000, step=77))},
    [("uint32", ref.ramp(4, 6, start=1000, step=77))],
)
