"""Block-scaled (MX) formats on trn3. A group is 8 partitions by the 4 elements of a packed word; its scale is one byte, 2^(byte - 127)."""
import numpy as np

import ref
from make import Arg, Out, case

FORMATS = {  # bits of fraction, exponent bias, exponent of the top binade
    "float8_e5m2": (2, 15, 15),
    "float8_e4m3fn": (3, 7, 8),
}


def decode(code, kind):
    """fp8 value of a byte."""
    fraction, bias, _ = FORMATS[kind]
    code = np.asarray(code, np.int64)
    e, m = (code & 127) >> fraction, code & ((1 << fraction) - 1)
    v = np.where(e == 0, m * 2.0 ** (1 - bias - fraction), (1 + m / 2.0**fraction) * 2.0 ** (e - bias).astype(float))
    if kind == "float8_e4m3fn":
        v = np.where((code & 127) == 127, np.nan, v)
    else:
        v = np.where(e == 31, np.where(m == 0, np.inf, np.nan), v)
    return np.where(code & 128, -v, v)


def encode(x, kind):
    """The byte nearest to x, ties to the even byte. x is in range."""
    table = decode(np.arange(128), kind)
    legal = np.flatnonzero(np.isfinite(table))
    out = np.zeros(x.shape, np.int64)
    for i, v in np.ndenumerate(x):
        if np.isnan(v):
            out[i] = 127
            continue
        d = np.abs(table[legal] - abs(v))
        best = legal[np.flatnonzero(d == d.min())]
        out[i] = (best[0] if len(best) == 1 or best[0] % 2 == 0 else best[1]) + (128 if np.signbit(v) else 0)
    return out


def quantise(x, kind):
    """Words and scale bytes by (group, column) of x [P, 4F]."""
    p, f = x.shape[0], x.shape[1] // 4
    code, scale = np.zeros(x.shape, np.int64), np.zeros((p // 8, f))
    for g in range(p // 8):
        for c in range(f):
            part = x[8 * g : 8 * g + 8, 4 * c : 4 * c + 4]
            top = np.abs(part).max()
            byte = 0 if top == 0 else max(0, int(np.floor(np.log2(top))) - (FORMATS[kind][2] - 1) + 127)
            code[8 * g : 8 * g + 8, 4 * c : 4 * c + 4] = encode(part / 2.0 ** (byte - 127), kind)
            scale[g, c] = byte
    return pack(code, 8), scale


def pack(code, bits):
    """Four codes to a word, the first lowest."""
    code = code.reshape(code.shape[0], -1, 4)
    return sum(code[:, :, j] << (bits * j) for j in range(4)).astype(np.float64)


rng = np.random.RandomState(3)
X = rng.standard_normal((32, 24)) * np.exp2(rng.randint(-3, 4, (32, 24)))
X[0:8, 4:8] = 0.0
X[8:16, 4:8] *= 2.0**-126  # the scale stops at 2^-127
X[16:24, 4:8] *= 2.0**120
X = ref.round_float(X, "bfloat16")
for kind in FORMATS:
    words, scales = quantise(X, kind)
    case(
        f"mx_quantize_{kind[7:]}",
        "quantize_mx: the largest element of a group keeps the exponent below the format's top one; zeros, tiny and huge groups.",
        f"""
q, s = tile((32, 6), nl.{kind}_x4), tile((4, 6), nl.uint8)
nisa.quantize_mx(dst=q, src=fetch(x), dst_scale=s)
return give(q.view(nl.uint32)), give(s)
""",
        {"x": Arg("bfloat16", X)},
        [("uint32", words), ("uint8", scales)],
        target="trn3",
    )

Y = ref.round_float(rng.standard_normal((64, 8)), "float16")
words, scales = quantise(Y, "float8_e4m3fn")
placed = np.full((64, 2), 9.0)
for q in range(2):
    placed[32 * q + 8 : 32 * q + 12] = scales[4 * q : 4 * q + 4]
case(
    "mx_quantize_packed_scale",
    "Scales of more than 32 partitions lie at the start of each quadrant; a slice from partition 8 takes the third slot and leaves the others.",
    """
q, s = tile((64, 2), nl.float8_e4m3fn_x4), tile((64, 2), nl.uint8)
nisa.memset(s, 9)
nisa.quantize_mx(dst=q, src=fetch(x), dst_scale=s[8:64, :])
return give(q.view(nl.uint32)), give(s)
""",
    {"x": Arg("float16", Y)},
    [("uint32", words), ("uint8", placed)],
    target="trn3",
)

Z = np.ones((32, 12))
Z[3, 2] = np.nan
Z[20, 9] = np.inf
scales = np.full((4, 3), 127.0 - 7)
scales[0, 0] = scales[2, 2] = 255
case(
    "mx_quantize_not_finite",
    "A group that holds a NaN or an infinity has the scale NaN.",
    """
q, s = tile((32, 3), nl.float8_e4m3fn_x4), tile((4, 3), nl.float8_e8m0fnu)
nisa.quantize_mx(dst=q, src=fetch(x), dst_scale=s)
return give(s.view(nl.uint8))
""",
    {"x": Arg("bfloat16", Z)},
    [("uint8", scales)],
    target="trn3",
)

# ---- products: values of few bits, so that every order of summation is exact

FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def operand(kind, p, n):
    """Words [p, n], scale bytes [p / 8, n] and what they stand for, [p, n, 4]."""
    scale = rng.randint(126, 129, (p // 8, n))
    if kind == "float4_e2m1fn":
        code = rng.randint(0, 16, (p, 4 * n))
        value, bits = FP4[code], 4
    else:
        fraction, bias, _ = FORMATS[kind]
        code = rng.randint(0, 2, (p, 4 * n)) << 7 | (bias + rng.randint(0, 2, (p, 4 * n))) << fraction
        code = code | rng.randint(0, 1 << fraction, (p, 4 * n))
        value, bits = decode(code, kind), 8
    return pack(code, bits), scale.astype(float), value.reshape(p, n, 4) * 2.0 ** (np.repeat(scale, 8, 0)[:, :, None] - 127)


def spread(scale, slot=0, parts=None):
    """Scale bytes of groups as they lie in a tile of all partitions."""
    groups, n = scale.shape
    out = np.full((8 * groups, n), 200.0)
    for g in range(groups):
        out[32 * (g // 4) + 4 * slot + g % 4] = scale[g]
    return out


def words_of(kind):
    return "uint16" if kind == "float4_e2m1fn" else "uint32"


for a, b, p in (("float8_e4m3fn", "float8_e4m3fn", 32), ("float8_e5m2", "float4_e2m1fn", 64), ("float4_e2m1fn", "float8_e4m3fn", 128)):
    sw, ss, sv = operand(a, p, 4)
    mw, ms, mv = operand(b, p, 7)
    exact = np.einsum("pmj,pnj->mn", sv, mv)
    case(
        f"mx_matmul_{a.split('_')[1]}_{b.split('_')[1]}",
        f"nc_matmul_mx of {a} and {b} over {p} partitions; the moving scales lie in the second slot; written, then added to itself.",
        f"""
s, m = fetch(stat).view(nl.{a}_x4), fetch(mov).view(nl.{b}_x4)
p = bank((4, 7))
for _ in range(2):
    nisa.nc_matmul_mx(dst=p, stationary=s, moving=m, stationary_scale=fetch(ss), moving_scale=fetch(ms)[4:{p}, :])
y = tile((4, 7), nl.float32)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
        {"stat": Arg(words_of(a), sw), "mov": Arg(words_of(b), mw), "ss": Arg("uint8", spread(ss)), "ms": Arg("uint8", spread(ms, 1))},
        [("float32", 2 * exact)],
        target="trn3",
    )

sw, ss, sv = operand("float8_e5m2", 32, 2)
mw, ms, mv = operand("float8_e5m2", 32, 600)
ms[1, 3] = 255
exact = np.einsum("pmj,pnj->mn", sv, mv)
exact[:, 3] = np.nan
case(
    "mx_matmul_nan_scale_bf16",
    "The scale 255 is a NaN and spoils its column alone; a bf16 result over more than a bank's columns.",
    """
s, m = fetch(stat).view(nl.float8_e5m2_x4), fetch(mov).view(nl.float8_e5m2_x4)
p = nl.ndarray((2, 600), nl.bfloat16, buffer=nl.psum)
nisa.nc_matmul_mx(dst=p, stationary=s, moving=m, stationary_scale=fetch(ss), moving_scale=fetch(ms), accumulate=False)
y = tile((2, 600), nl.bfloat16)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
    {"stat": Arg("uint32", sw), "mov": Arg("uint32", mw), "ss": Arg("uint8", ss), "ms": Arg("uint8", ms)},
    [("bfloat16", ref.round_float(exact, "bfloat16"))],
    target="trn3",
)
