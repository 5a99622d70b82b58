"""The Tensor engine: operand types, accumulation in PSUM, transposes, tiles of the array."""
import numpy as np

import ref
from make import Arg, Out, case

A, B = ref.pick(31, 6, 4, lo=-4, hi=4), ref.pick(32, 6, 10, lo=-4, hi=4)
out_of = lambda p: f"y = tile({p}.shape, nl.float32)\nnisa.tensor_copy(dst=y, src={p})\nreturn give(y)"

for dtype in ("float32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2"):
    a, b = ref.round_float(A, dtype), ref.round_float(B, dtype)
    case(
        f"matmul_{dtype}",
        f"nc_matmul of {dtype}: dst[m, n] = sum over k of stationary[k, m] * moving[k, n], in fp32.",
        "p = bank((4, 10))\nnisa.nc_matmul(dst=p, stationary=fetch(a), moving=fetch(b))\n" + out_of("p"),
        {"a": Arg(dtype, a), "b": Arg(dtype, b)},
        [Out("float32", a.T @ b, atol=1e-5)],
    )
case(
    "matmul_mixed_types",
    "Operands of two narrow types may be mixed.",
    "p = bank((4, 10))\nnisa.nc_matmul(dst=p, stationary=fetch(a), moving=fetch(b))\n" + out_of("p"),
    {"a": Arg("bfloat16", ref.round_float(A, "bfloat16")), "b": Arg("float8_e5m2", ref.round_float(B, "float8_e5m2"))},
    [Out("float32", ref.round_float(A, "bfloat16").T @ ref.round_float(B, "float8_e5m2"), atol=1e-5)],
)
rng = np.random.RandomState(9)
WA = ref.round_float(rng.standard_normal((40, 3)) * np.exp2(rng.randint(-10, 11, (40, 3))), "float32")
WB = ref.round_float(rng.standard_normal((40, 5)) * np.exp2(rng.randint(-10, 11, (40, 5))), "float32")
case(
    "matmul_order",
    "The order of a product's sum is fixed: fused multiply-adds over k from 0 upward. This compares bits.",
    "p = bank((3, 5))\nnisa.nc_matmul(dst=p, stationary=fetch(a), moving=fetch(b))\n" + out_of("p"),
    {"a": Arg("float32", WA), "b": Arg("float32", WB)},
    [("float32", ref.matmul_chain(WA, WB))],
)
one = np.zeros((3, 1))
case(
    "matmul_order_accumulate",
    "Each matmul's own sum starts from zero and is added to PSUM once: 1 + (2^24 + 1 - 2^24) is 1, not 2.",
    """
s_t, m_t = fetch(s), fetch(m)
p = bank((1, 1))
nisa.nc_matmul(dst=p, stationary=s_t[0:1, :], moving=s_t[0:1, :])
nisa.nc_matmul(dst=p, stationary=s_t, moving=m_t)
y = tile((1, 1), nl.float32)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
    {"s": Arg("float32", [[1.0], [1.0], [1.0]]), "m": Arg("float32", [[2.0**24], [1.0], [-(2.0**24)]])},
    [("float32", [[1.0]])],
)
case(
    "matmul_accumulate_default",
    "Without accumulate=, the first write of a new PSUM tile overwrites and later ones add; a read resets nothing.",
    """
a_t, b_t = fetch(a), fetch(b)
p = bank((4, 10))
nisa.nc_matmul(dst=p, stationary=a_t[0:3, :], moving=b_t[0:3, :])
y, z = tile((4, 10), nl.float32), tile((4, 10), nl.float32)
nisa.tensor_copy(dst=y, src=p)
nisa.nc_matmul(dst=p, stationary=a_t[0:3, :], moving=b_t[0:3, :])
nisa.tensor_copy(dst=z, src=p)
return give(y), give(z)
""",
    {"a": Arg("float32", A), "b": Arg("float32", B)},
    [Out("float32", A[:3].T @ B[:3], atol=1e-5), Out("float32", 2 * A[:3].T @ B[:3], atol=2e-5)],
)
case(
    "matmul_accumulate_explicit",
    "accumulate=False overwrites whatever is there, accumulate=True adds.",
    """
a_t, b_t = fetch(a), fetch(b)
p = bank((4, 10))
nisa.nc_matmul(dst=p, stationary=a_t, moving=b_t, accumulate=False)
nisa.nc_matmul(dst=p, stationary=a_t, moving=b_t, accumulate=False)
y, z = tile((4, 10), nl.float32), tile((4, 10), nl.float32)
nisa.tensor_copy(dst=y, src=p)
nisa.nc_matmul(dst=p, stationary=a_t, moving=b_t, accumulate=True)
nisa.tensor_copy(dst=z, src=p)
return give(y), give(z)
""",
    {"a": Arg("float32", A), "b": Arg("float32", B)},
    [Out("float32", A.T @ B, atol=1e-5), Out("float32", 2 * A.T @ B, atol=2e-5)],
)
case(
    "matmul_accumulate_regions",
    "The rule is for each element: a second product over half of the columns adds there and overwrites the rest.",
    """
a_t, b_t = fetch(a), fetch(b)
p = bank((4, 10))
nisa.nc_matmul(dst=p[:, 0:6], stationary=a_t, moving=b_t[:, 0:6])
nisa.nc_matmul(dst=p[:, 4:10], stationary=a_t, moving=b_t[:, 4:10])
"""
    + out_of("p"),
    {"a": Arg("float32", A), "b": Arg("float32", B)},
    [Out("float32", (A.T @ B) * np.where((np.arange(10) >= 4) & (np.arange(10) < 6), 2, 1), atol=2e-5)],
)
case(
    "matmul_accumulate_loop",
    "A fresh tile in each round of an unrolled loop starts fresh; a tile made before the loop goes on adding.",
    """
a_t, b_t = fetch(a), fetch(b)
total = bank((4, 10))
results = []
for k in range(0, 6, 2):
    own = bank((4, 10))
    nisa.nc_matmul(dst=own, stationary=a_t[:, :], moving=b_t[:, :])
    nisa.nc_matmul(dst=total, stationary=a_t[:, :], moving=b_t[:, :])
    y = tile((4, 10), nl.float32)
    nisa.tensor_copy(dst=y, src=own)
    results.append(give(y))
z = tile((4, 10), nl.float32)
nisa.tensor_copy(dst=z, src=total)
return results[0], results[2], give(z)
""",
    {"a": Arg("float32", A), "b": Arg("float32", B)},
    [Out("float32", A.T @ B, atol=1e-5), Out("float32", A.T @ B, atol=1e-5), Out("float32", 3 * A.T @ B, atol=3e-5)],
)
case(
    "matmul_accumulate_dynamic_loop",
    "In a register loop the first round overwrites and later rounds add, too.",
    """
a_t, b_t = fetch(a), fetch(b)
p = bank((4, 10))

def add_product(i):
    nisa.nc_matmul(dst=p, stationary=a_t, moving=b_t)

nl.fori_loop(0, 5, add_product)
"""
    + out_of("p"),
    {"a": Arg("float32", A), "b": Arg("float32", B)},
    [Out("float32", 5 * A.T @ B, atol=5e-5)],
)
M3 = ref.pick(33, 6, 3, 4)
case(
    "matmul_free_dims_flatten",
    "Free dimensions of an operand are flattened: a window of an image is a moving operand as it is.",
    """
p = bank((4, 2, 3))
nisa.nc_matmul(dst=p, stationary=fetch(a), moving=fetch(m)[:, 1:3, 0:3])
y = tile((4, 2, 3), nl.float32)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
    {"a": Arg("float32", A), "m": Arg("float32", M3)},
    [Out("float32", np.einsum("km,kab->mab", A, M3[:, 1:3, 0:3]), atol=1e-5)],
)
L = ref.pick(34, 64, 8)
case(
    "matmul_lower_partitions",
    "Both operands may start at another legal partition; the result may too.",
    """
x_t = fetch(x)
p = nl.ndarray((64, 8), dtype=nl.float32, buffer=nl.psum)
nisa.nc_matmul(dst=p[32:40, :], stationary=x_t[32:64, :], moving=x_t[32:64, :])
y = tile((8, 8), nl.float32)
nisa.tensor_copy(dst=y, src=p[32:40, :])
return give(y)
""",
    {"x": Arg("float32", L)},
    [Out("float32", L[32:].T @ L[32:], atol=1e-4)],
)
case(
    "matmul_double_row",
    "perf_mode double_row: two rows of fp8 for each partition, summed over both.",
    """
p = bank((4, 6))
nisa.nc_matmul(dst=p, stationary=fetch(a), moving=fetch(b), perf_mode=nisa.matmul_perf_mode.double_row)
y = tile((4, 6), nl.float32)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
    {"a": Arg("float8_e4m3", ref.round_float(ref.pick(35, 8, 2, 4), "float8_e4m3")), "b": Arg("float8_e4m3", ref.round_float(ref.pick(36, 8, 2, 6), "float8_e4m3"))},
    [Out("float32", np.einsum("krm,krn->mn", ref.round_float(ref.pick(35, 8, 2, 4), "float8_e4m3"), ref.round_float(ref.pick(36, 8, 2, 6), "float8_e4m3")), atol=2e-5)],
)
T = ref.pick(37, 64, 32)
case(
    "matmul_row_tiles",
    "Two products in two row tiles of the array, each with half of the partitions.",
    """
x_t = fetch(x)
p, q = bank((32, 32)), bank((32, 32))
nisa.nc_matmul(dst=p, stationary=x_t[0:32, :], moving=x_t[0:32, :], tile_position=(0, 0), tile_size=(32, 128))
nisa.nc_matmul(dst=q, stationary=x_t[32:64, :], moving=x_t[32:64, :], tile_position=(32, 0), tile_size=(32, 128))
y, z = tile((32, 32), nl.float32), tile((32, 32), nl.float32)
nisa.tensor_copy(dst=y, src=p)
nisa.tensor_copy(dst=z, src=q)
return give(y), give(z)
""",
    {"x": Arg("float32", T)},
    [Out("float32", T[:32].T @ T[:32], atol=1e-4), Out("float32", T[32:].T @ T[32:], atol=1e-4)],
)
case(
    "matmul_bf16_psum",
    "On trn3 the result may be bfloat16 in PSUM.",
    """
p = nl.ndarray((4, 10), dtype=nl.bfloat16, buffer=nl.psum)
nisa.nc_matmul(dst=p, stationary=fetch(a), moving=fetch(b))
y = tile((4, 10), nl.bfloat16)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
    {"a": Arg("bfloat16", ref.round_float(A, "bfloat16")), "b": Arg("bfloat16", ref.round_float(B, "bfloat16"))},
    [Out("bfloat16", ref.round_float(A, "bfloat16").T @ ref.round_float(B, "bfloat16"), rtol=2**-8, atol=1e-5)],
    target="trn3",
)
S = np.array([[np.nan, 1.0, -np.inf], [2.0, -0.0, np.inf]])
case(
    "transpose_tensor_engine",
    "nc_transpose on the Tensor engine moves bits: NaN and infinity do not spread.",
    """
p = bank((3, 2))
nisa.nc_transpose(dst=p, data=fetch(x), engine=nisa.engine.tensor)
y = tile((3, 2), nl.float32)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
    {"x": Arg("float32", S)},
    [("float32", S.T)],
)
for dtype in ("bfloat16", "float16"):
    case(
        f"transpose_{dtype}_psum",
        "In a transpose a 2-byte type goes to PSUM as it is.",
        f"""
p = nl.ndarray((10, 6), dtype=nl.{dtype}, buffer=nl.psum)
nisa.nc_transpose(dst=p, data=fetch(x))
y = tile((10, 6), nl.{dtype})
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
        {"x": Arg(dtype, ref.round_float(B, dtype))},
        [(dtype, ref.round_float(B, dtype).T)],
    )
case(
    "transpose_vector_engine",
    "nc_transpose on the Vector engine: up to 32 by 32, SBUF to SBUF, any type.",
    """
y, z = tile((10, 6), nl.float32), tile((3, 2), nl.int32)
nisa.nc_transpose(dst=y, data=fetch(x), engine=nisa.engine.vector)
nisa.nc_transpose(dst=z, data=fetch(i))
return give(y), give(z)
""",
    {"x": Arg("float32", B), "i": Arg("int32", [[1, -2, 2**31 - 1], [16777217, 5, 6]])},
    [("float32", B.T), ("int32", [[1, 16777217], [-2, 5], [2**31 - 1, 6]])],
)
case(
    "transpose_flattens",
    "Free dimensions of the data are flattened.",
    """
p = bank((12, 6))
nisa.nc_transpose(dst=p, data=fetch(m))
y = tile((12, 6), nl.float32)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
    {"m": Arg("float32", M3)},
    [("float32", M3.reshape(6, 12).T)],
)
case(
    "matmul_is_transpose",
    "nc_matmul with is_transpose moves the stationary operand, with an identity as moving.",
    """
p = bank((10, 6))
nisa.nc_matmul(dst=p, stationary=fetch(x), moving=fetch(eye), is_transpose=True)
y = tile((10, 6), nl.float32)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
    {"x": Arg("float32", B), "eye": Arg("float32", np.eye(6))},
    [("float32", B.T)],
)
case(
    "psum_is_a_destination",
    "Vector instructions and memset write PSUM; a tile may be one slice of a bank.",
    """
p = bank((3, 8))
nisa.memset(dst=p, value=1.5)
nisa.tensor_scalar(dst=p[:, 2:5], data=p[:, 2:5], op0=nl.multiply, operand0=-2.0)
y = tile((3, 8), nl.float32)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
    {},
    [("float32", np.tile([1.5, 1.5, -3, -3, -3, 1.5, 1.5, 1.5], (3, 1)))],
)
