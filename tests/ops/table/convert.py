"""Type conversion: every pair of types, by a Vector copy and by a DMA; what the rounding rules say at their edges."""
import numpy as np

import ref
from make import Arg, Out, case

TYPES = list(ref.FLOATS) + list(ref.INTS)

# Values near the edges of all types: ties to even, the steps around the largest values, subnormals of the narrow formats.
EDGES = [0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 3.49, 100.0, 127.5, 128.5, -128.5, -129.0, 240.0, 247.0, 249.0, 255.5, 256.0, 448.0, 32767.5, 65504.0]
EDGES += [65519.0, 65520.0, 65535.5, -32769.0, 57344.0, 61439.0, 61441.0, 1e-3, 2.0**-9, 3 * 2.0**-10, 2.0**-17, 6e-8, 3e-8, 1e38, -1e38, 3.4e38]
EDGES += [1.00390625, 1.01171875, 16777217.0, 2147483520.0, 4294967040.0, 1e10, -1e10, 1 / 3]


def samples(dtype):
    if dtype in ref.FLOATS:
        values = ref.round_float(ref.round_float(EDGES, "float32"), dtype)
        return np.where(np.isfinite(values), values, 1.0)
    lo, hi = ref.INTS[dtype]
    picks = [0, 1, 2, 3, 7, 100, 127, 128, 200, 255, 256, 1000, 32767, 32768, 40000, 65535, 65536, 16777215, 16777217, 16777219]
    picks += [2**31 - 1, 2**31 - 64, 2**32 - 1, -1, -2, -100, -128, -129, -32768, -32769, -16777217, -(2**31)]
    return np.array([v if lo <= v <= hi else v % 100 for v in picks], np.float64)


for source in TYPES:
    x = samples(source).reshape(2, -1)
    dests = ", ".join(f"nl.{d}" for d in TYPES)
    case(
        f"convert_{source}",
        f"A Vector copy of {source} to every type: exact when equal, else through fp32, to nearest even, saturating.",
        f"""
x_t = fetch(x)
results = []
for dtype in ({dests}):
    y = tile(x.shape, dtype)
    nisa.tensor_copy(dst=y, src=x_t, engine=nisa.engine.vector)
    results.append(give(y))
return tuple(results)
""",
        {"x": Arg(source, x)},
        [(d, ref.convert(x, source, d)) for d in TYPES],
    )

for source in ("float32", "int32", "bfloat16"):
    x = samples(source).reshape(2, -1)
    dests = ", ".join(f"nl.{d}" for d in TYPES)
    case(
        f"convert_dma_{source}",
        f"A DMA from {source} in HBM to every type in SBUF converts as a copy does.",
        f"""
results = []
for dtype in ({dests}):
    y = tile(x.shape, dtype)
    nisa.dma_copy(dst=y, src=x)
    results.append(give(y))
return tuple(results)
""",
        {"x": Arg(source, x)},
        [(d, ref.convert(x, source, d)) for d in TYPES],
    )

for dest in ("bfloat16", "float16", "int8", "uint8", "int32"):
    x = samples("float32").reshape(2, -1)
    case(
        f"convert_result_{dest}",
        f"Instructions compute in fp32 and convert once, on writing {dest}: tensor_scalar, activation, tensor_tensor.",
        f"""
x_t = fetch(x)
a, b, c = tile(x.shape, nl.{dest}), tile(x.shape, nl.{dest}), tile(x.shape, nl.{dest})
nisa.tensor_scalar(dst=a, data=x_t, op0=nl.multiply, operand0=0.5)
nisa.activation(dst=b, op=nl.copy, data=x_t, scale=2.0)
nisa.tensor_tensor(dst=c, data1=x_t, data2=x_t, op=nl.add)
return give(a), give(b), give(c)
""",
        {"x": Arg("float32", ref.round_float(x, "float32"))},
        [(dest, ref.cast(ref.round_float(x, "float32") * s, dest)) for s in (0.5, 2.0, 2.0)],
    )

special = np.array([[np.inf, -np.inf, np.nan, -0.0, 1.0, np.inf]])
case(
    "convert_specials",
    "Infinities and NaN between float types; infinities saturate when they become integers.",
    """
x_t = fetch(x)
results = []
for dtype in (nl.float32, nl.bfloat16, nl.float16, nl.float8_e5m2):
    y = tile(x.shape, dtype)
    nisa.tensor_copy(dst=y, src=x_t)
    results.append(give(y))
for dtype in (nl.int8, nl.uint16, nl.int32):
    y = tile((1, 2), dtype)
    nisa.tensor_copy(dst=y, src=x_t[:, 0:2])
    results.append(give(y))
return tuple(results)
""",
    {"x": Arg("float32", special)},
    [(d, special) for d in ("float32", "bfloat16", "float16", "float8_e5m2")]
    + [(d, [[float(ref.INTS[d][1]), float(ref.INTS[d][0])]]) for d in ("int8", "uint16", "int32")],
)

x = ref.round_float(ref.pick(3, 4, 6, lo=-200, hi=200), "float32")
case(
    "convert_scalar_engine",
    "The Scalar engine's copy: exact for equal types on trn2, through fp32 otherwise.",
    """
i_t, x_t = fetch(i), fetch(x)
a, b = tile(i.shape, nl.int32), tile(x.shape, nl.int8)
nisa.tensor_copy(dst=a, src=i_t, engine=nisa.engine.scalar)
nisa.tensor_copy(dst=b, src=x_t, engine=nisa.engine.scalar)
return give(a), give(b)
""",
    {"i": Arg("int32", [[16777217, -16777219, 2**31 - 1, -(2**31)]]), "x": Arg("float32", x)},
    [("int32", [[16777217, -16777219, 2**31 - 1, -(2**31)]]), ("int8", ref.cast(x, "int8"))],
)

ref.FLOATS["float8_e4m3fn"] = (3, 7, 448.0, "nan")  # in range only: what overflow gives is not documented
fn_values = np.array([[0.0, 448.0, -448.0, 240.0, 256.0, 17.0, 19.0, 1.0625, 1.1875, 2.0**-9, 3 * 2.0**-10, 2.0**-10]])
case(
    "convert_e4m3fn",
    "float8_e4m3fn has no infinity and reaches 448.",
    """
y = tile(x.shape, nl.float8_e4m3fn)
nisa.tensor_copy(dst=y, src=fetch(x))
z = tile(x.shape, nl.float32)
nisa.tensor_copy(dst=z, src=y)
return give(y), give(z)
""",
    {"x": Arg("float32", fn_values)},
    [("float8_e4m3fn", ref.round_float(fn_values, "float8_e4m3fn")), ("float32", ref.round_float(fn_values, "float8_e4m3fn"))],
)
