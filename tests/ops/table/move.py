"""Instructions that place, copy, select and shuffle."""
import numpy as np

import ref
from make import Arg, Out, case

for dtype in list(ref.FLOATS):
    if dtype == "float8_e4m3fn":
        continue
    case(f"memset_{dtype}", f"memset of a {dtype} tile rounds its value to the type.", f"t = tile((2, 5), nl.{dtype})\nnisa.memset(dst=t, value=0.3)\nreturn give(t)", {}, [(dtype, np.full((2, 5), ref.round_float(0.3, dtype)))])
for dtype in ref.INTS:
    v = ref.INTS[dtype][0] if ref.INTS[dtype][0] < 0 else ref.INTS[dtype][1]
    case(f"memset_{dtype}", f"memset of a {dtype} tile holds the type's extreme.", f"t = tile((2, 5), nl.{dtype})\nnisa.memset(dst=t, value={v})\nreturn give(t)", {}, [(dtype, np.full((2, 5), v))])
X = ref.pick(41, 3, 8)
case(
    "memset_view",
    "memset of a strided view leaves the rest alone; either engine.",
    """
t = fetch(x)
nisa.memset(dst=t[:, 1:8:3], value=9.0, engine=nisa.engine.vector)
nisa.memset(dst=t[0:1, 0:1], value=-9.0, engine=nisa.engine.gpsimd)
return give(t)
""",
    {"x": Arg("float32", X)},
    [("float32", [[-9.0 if (r, c) == (0, 0) else 9.0 if c % 3 == 1 else X[r, c] for c in range(8)] for r in range(3)])],
)
case(
    "copy_engines",
    "tensor_copy on each engine that has it.",
    """
x_t = fetch(x)
r = []
for e in (nisa.engine.vector, nisa.engine.scalar, nisa.engine.gpsimd, nisa.engine.unknown):
    y = tile(x.shape, nl.float32)
    nisa.tensor_copy(dst=y, src=x_t, engine=e)
    r.append(give(y))
return tuple(r)
""",
    {"x": Arg("float32", X)},
    [("float32", X)] * 4,
)
case(
    "copy_engine_aliases",
    "The older names of the engines still work.",
    """
x_t = fetch(x)
a, b = tile(x.shape, nl.float32), tile(x.shape, nl.float32)
nisa.tensor_copy(dst=a, src=x_t, engine=nisa.vector_engine)
nisa.tensor_copy(dst=b, src=x_t, engine=nisa.scalar_engine)
return give(a), give(b)
""",
    {"x": Arg("float32", X)},
    [("float32", X)] * 2,
)
case(
    "copy_keeps_bits",
    "A copy between equal types keeps every bit: minus zero, a subnormal, infinity, a large integer.",
    """
a, b = tile(x.shape, nl.float32), tile(i.shape, nl.int32)
nisa.tensor_copy(dst=a, src=fetch(x))
nisa.tensor_copy(dst=b, src=fetch(i))
y = tile(x.shape, nl.int32)
nisa.tensor_copy(dst=y, src=a.view(nl.int32))
return give(y), give(b)
""",
    {"x": Arg("float32", [[-0.0, 2.0**-149, np.inf, 1.0]]), "i": Arg("int32", [[16777217, -16777217, 2**31 - 1]])},
    [("int32", [[-(2**31), 1, 0x7F800000, 0x3F800000]]), ("int32", [[16777217, -16777217, 2**31 - 1]])],
)
case(
    "copy_other_lanes",
    "Source and destination may start at different legal partitions.",
    """
x_t = fetch(x)
y = tile((64, 3), nl.float32)
nisa.memset(dst=y, value=0.0)
nisa.tensor_copy(dst=y[32:37, :], src=x_t[0:5, :])
return give(y)
""",
    {"x": Arg("float32", ref.ramp(5, 3))},
    [("float32", np.concatenate([np.zeros((32, 3)), ref.ramp(5, 3), np.zeros((27, 3))]))],
)
M = np.array([[1, 0, 0, 7, 1, 0, 0, 255], [0, 0, 1, 1, 0, 1, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]])
for dtype in ("uint8", "uint16", "uint32"):
    case(
        f"predicated_{dtype}",
        f"tensor_copy_predicated with a {dtype} mask: from a tile, from a number, and with the mask reversed.",
        """
x_t, m_t = fetch(x), fetch(m)
a, b, c = [tile(x.shape, nl.float32) for _ in range(3)]
for t in (a, b, c):
    nisa.memset(dst=t, value=-1.0)
nisa.tensor_copy_predicated(dst=a, src=x_t, predicate=m_t)
nisa.tensor_copy_predicated(dst=b, src=5.0, predicate=m_t)
nisa.tensor_copy_predicated(dst=c, src=x_t, predicate=m_t, reverse_pred=True)
return give(a), give(b), give(c)
""",
        {"x": Arg("float32", X), "m": Arg(dtype, M)},
        [("float32", np.where(M != 0, X, -1)), ("float32", np.where(M != 0, 5.0, -1)), ("float32", np.where(M != 0, -1, X))],
    )
R = ref.ramp(64, 2)
masks = {
    "rotate": [(i - 1) % 32 for i in range(32)],
    "reverse": list(range(31, -1, -1)),
    "keep": [255 if i % 3 else (i + 2) % 32 for i in range(32)],
}
for name, m in masks.items():
    want = np.full((64, 2), -1.0)
    for q in (0, 32):
        for i, s in enumerate(m):
            if s != 255:
                want[q + i] = R[q + s]
    case(
        f"shuffle_{name}",
        "nc_stream_shuffle within each group of 32 lanes; 255 leaves a lane as it was.",
        f"""
y = tile((64, 2), nl.float32)
nisa.memset(dst=y, value=-1.0)
nisa.nc_stream_shuffle(dst=y, src=fetch(x), shuffle_mask={m})
return give(y)
""",
        {"x": Arg("float32", R)},
        [("float32", want)],
    )
case(
    "shuffle_broadcast",
    "One lane to 32: the usual way to broadcast over lanes.",
    """
y = tile((32, 4), nl.float32)
nisa.nc_stream_shuffle(dst=y, src=fetch(x), shuffle_mask=[0] * 32)
return give(y)
""",
    {"x": Arg("float32", ref.ramp(1, 4))},
    [("float32", np.tile(ref.ramp(1, 4), (32, 1)))],
)
IOTAS = {
    "line": ([[1, 6]], 0, 0, 3, "int32"),
    "lanes": ([[1, 1]], 5, 2, 128, "int32"),
    "plane": ([[10, 3], [-2, 4]], 7, 100, 4, "int32"),
    "four": ([[1000, 2], [100, 2], [10, 3], [1, 2]], -5, -1, 2, "float32"),
    "bytes": ([[3, 5]], 1, 1, 3, "uint8"),
    "bf16": ([[1, 8]], 250, 1, 2, "bfloat16"),
    "zero_step": ([[0, 3], [1, 2]], 0, 1, 3, "uint32"),
}
for name, (pattern, offset, mult, lanes, dtype) in IOTAS.items():
    v = ref.affine(pattern, lanes, offset, mult)
    case(
        f"iota_{name}",
        f"iota with pattern {pattern}, offset {offset}, {mult} more for each lane.",
        f"""
t = tile(({lanes}, {v.shape[1]}), nl.{dtype})
nisa.iota(dst=t, pattern={pattern}, offset={offset}, channel_multiplier={mult})
return give(t)
""",
        {},
        [(dtype, ref.cast(v, dtype))],
    )
case(
    "iota_from_its_first_lane",
    "iota counts lanes from the first of its destination.",
    """
t = tile((64, 2), nl.int32)
nisa.memset(dst=t, value=-1)
nisa.iota(dst=t[32:36, :], pattern=[[1, 2]], offset=0, channel_multiplier=10)
return give(t)
""",
    {},
    [("int32", np.concatenate([np.full((32, 2), -1), ref.affine([[1, 2]], 4, 0, 10), np.full((28, 2), -1)]))],
)
Z = ref.pick(42, 6, 8)
COMPARE = {"equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal}
for name, op in COMPARE.items():
    v = ref.affine([[-1, 8]], 6, 2, 1)
    case(
        f"affine_select_{name}",
        f"affine_select keeps elements where lane + 2 - column is {name} 0.",
        f"""
y = tile(x.shape, nl.float32)
nisa.affine_select(dst=y, pattern=[[-1, 8]], offset=2, channel_multiplier=1, on_true_tile=fetch(x), on_false_value=-7.0, cmp_op=nl.{name})
return give(y)
""",
        {"x": Arg("float32", Z)},
        [("float32", np.where(op(v, 0), Z, -7.0))],
    )
v = ref.affine([[4, 2], [-1, 4]], 6, 0, -1)
case(
    "affine_select_plane",
    "affine_select with a two-dimensional pattern, written as bfloat16.",
    """
y = tile((6, 8), nl.bfloat16)
nisa.affine_select(dst=y, pattern=[[4, 2], [-1, 4]], channel_multiplier=-1, on_true_tile=fetch(x), on_false_value=0.0, cmp_op=nl.greater)
return give(y)
""",
    {"x": Arg("float32", Z)},
    [("bfloat16", np.where(v > 0, ref.round_float(Z, "bfloat16"), 0.0))],
)
case(
    "predicate_from_compare",
    "The usual masked update: a comparison writes the mask, a predicated copy uses it.",
    """
x_t = fetch(x)
m = tile(x.shape, nl.uint8)
nisa.tensor_scalar(dst=m, data=x_t, op0=nl.less, operand0=0.0)
nisa.tensor_copy_predicated(dst=x_t, src=0.0, predicate=m)
return give(x_t)
""",
    {"x": Arg("float32", Z)},
    [("float32", np.maximum(Z, 0))],
)
