"""Reductions, scans and statistics along the free dimensions, and the one across partitions."""
import numpy as np

import ref
from make import Arg, Out, case

X4 = ref.pick(21, 2, 3, 4, 5)
X = ref.pick(22, 3, 20)
HALVES = np.exp2(np.random.RandomState(2).randint(-1, 2, (2, 3, 4, 5))) * np.where(np.random.RandomState(3).rand(2, 3, 4, 5) < 0.3, -1, 1)

ARITH = {
    "add": (np.sum, X4),
    "multiply": (np.prod, HALVES),  # powers of two: exact in any order
    "maximum": (np.max, X4),
    "minimum": (np.min, X4),
    "logical_or": (lambda v, axis: (v != 0).any(axis) * 1.0, (X4 > 1) * 1.0),
    "logical_and": (lambda v, axis: (v != 0).all(axis) * 1.0, (X4 > -1.5) * 1.0),
}
for name, (f, x) in ARITH.items():
    case(
        f"reduce_{name}",
        f"tensor_reduce with {name} over the last, the last two and all free dimensions.",
        f"""
x_t = fetch(x)
a, b, c = tile((2, 3, 4), nl.float32), tile((2, 3), nl.float32), tile((2, 1), nl.float32)
nisa.tensor_reduce(dst=a, op=nl.{name}, data=x_t, axis=3)
nisa.tensor_reduce(dst=b, op=nl.{name}, data=x_t, axis=(2, 3))
nisa.tensor_reduce(dst=c, op=nl.{name}, data=x_t, axis=(1, 2, 3))
return give(a), give(b), give(c)
""",
        {"x": Arg("float32", x)},
        [
            Out("float32", f(x, axis=3), atol=1e-5 if name == "add" else 0),
            Out("float32", f(x, axis=(2, 3)), atol=1e-5 if name == "add" else 0),
            Out("float32", f(x, axis=(1, 2, 3)).reshape(2, 1), atol=3e-5 if name == "add" else 0),
        ],
    )

N = np.random.RandomState(4).randint(-(2**31), 2**31, (2, 9), np.int64)
for name, op in (("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor)):
    x = N | 0x10101010 if name == "bitwise_and" else N
    x = np.where(x >= 2**31, x - 2**32, x)
    case(
        f"reduce_{name}",
        f"tensor_reduce with {name} works on bit patterns.",
        f"""
y = tile((2, 1), nl.int32)
nisa.tensor_reduce(dst=y, op=nl.{name}, data=fetch(x), axis=1)
return give(y)
""",
        {"x": Arg("int32", x)},
        [("int32", op.reduce(x, axis=1, keepdims=True))],
    )

case(
    "reduce_negate_keepdims",
    "negate changes the sign of the result; keepdims keeps reduced dimensions as 1.",
    """
x_t = fetch(x)
a, b = tile((2, 3, 4, 1), nl.float32), tile((2, 3, 1, 1), nl.bfloat16)
nisa.tensor_reduce(dst=a, op=nl.maximum, data=x_t, axis=3, negate=True, keepdims=True)
nisa.tensor_reduce(dst=b, op=nl.minimum, data=x_t, axis=(2, 3), keepdims=True)
return give(a), give(b)
""",
    {"x": Arg("float32", X4)},
    [("float32", -X4.max(3, keepdims=True)), ("bfloat16", X4.min((2, 3), keepdims=True))],
)
case(
    "reduce_negative_axis_list",
    "An axis may count from the end.",
    """
y = tile((2, 3, 4), nl.float32)
nisa.tensor_reduce(dst=y, op=nl.maximum, data=fetch(x), axis=[-1])
return give(y)
""",
    {"x": Arg("float32", X4)},
    [("float32", X4.max(3))],
)
wide = ref.round_float(np.random.RandomState(7).standard_normal((2, 61)) * np.exp2(np.random.RandomState(8).randint(-8, 9, (2, 61))), "float32")
case(
    "reduce_order",
    "The order of a sum is fixed: 16 partial sums by position, then a tree. This compares bits.",
    """
y = tile((2, 1), nl.float32)
nisa.tensor_reduce(dst=y, op=nl.add, data=fetch(x), axis=1)
return give(y)
""",
    {"x": Arg("float32", wide)},
    [("float32", [[ref.sum16(row)] for row in wide])],
)
case(
    "reduce_view",
    "Data may be any view: every second column, and a transposed order of the free dimensions.",
    """
x_t = fetch(x)
a, b = tile((2, 3, 4), nl.float32), tile((2, 4, 5), nl.float32)
nisa.tensor_reduce(dst=a, op=nl.maximum, data=x_t[:, :, :, 0:5:2], axis=3)
nisa.tensor_reduce(dst=b, op=nl.minimum, data=x_t.permute((0, 2, 3, 1)), axis=3)
return give(a), give(b)
""",
    {"x": Arg("float32", X4)},
    [("float32", X4[..., 0:5:2].max(3)), ("float32", X4.min(1))],
)
case(
    "reduce_psum_int",
    "Integers are summed in fp32 and come out as integers; the data may be in PSUM.",
    """
p = bank((3, 20))
nisa.tensor_copy(dst=p, src=fetch(x))
a, b = tile((3, 1), nl.int32), tile((3, 1), nl.int32)
nisa.tensor_reduce(dst=a, op=nl.add, data=p, axis=1)
nisa.tensor_reduce(dst=b, op=nl.maximum, data=fetch(x), axis=1)
return give(a), give(b)
""",
    {"x": Arg("int32", ref.ramp(3, 20, start=-13, step=7))},
    [("int32", ref.ramp(3, 20, start=-13, step=7).sum(1, keepdims=True)), ("int32", ref.ramp(3, 20, start=-13, step=7).max(1, keepdims=True))],
)
R = ref.ramp(5, 6, start=-4)
case(
    "partition_reduce_add",
    "tensor_partition_reduce sums over the lanes.",
    """
y = tile((1, 6), nl.float32)
nisa.tensor_partition_reduce(dst=y, op=nl.add, data=fetch(x))
return give(y)
""",
    {"x": Arg("float32", R)},
    [("float32", R.sum(0, keepdims=True))],
)
case(
    "partition_reduce_max",
    "tensor_partition_reduce takes the maximum over the lanes.",
    """
y = tile((1, 6), nl.float32)
nisa.tensor_partition_reduce(dst=y, op=nl.maximum, data=fetch(x))
return give(y)
""",
    {"x": Arg("float32", X[:, :6])},
    [("float32", X[:, :6].max(0, keepdims=True))],
)
V = np.array([[0.5], [2.0], [-1.0]])
case(
    "tensor_scalar_reduce",
    "tensor_scalar_reduce: one operation with a number for each lane, and a reduction of the results.",
    """
x_t, v_t = fetch(x), fetch(v)
y, r, s = tile(x.shape, nl.float32), tile((3, 1), nl.float32), tile((3, 1), nl.float32)
nisa.tensor_scalar_reduce(dst=y, data=x_t, op0=nl.multiply, operand0=v_t, reduce_op=nl.add, reduce_res=r)
nisa.tensor_scalar_reduce(dst=y, data=x_t, op0=nl.subtract, operand0=1.0, reduce_op=nl.maximum, reduce_res=s)
return give(y), give(r), give(s)
""",
    {"x": Arg("float32", X), "v": Arg("float32", V)},
    [("float32", X - 1), Out("float32", (X * V).sum(1, keepdims=True), atol=1e-5), ("float32", (X - 1).max(1, keepdims=True))],
)
A, B = ref.ramp(2, 4, start=1), ref.ramp(2, 4, start=10)
case(
    "tensor_scalar_reduce_commands",
    "The Vector accumulator is carried by reduce and started from a value by load_reduce; negate is for the stored value only.",
    """
a_t, b_t = fetch(a), fetch(b)
y, r, s = tile(a.shape, nl.float32), tile((2, 1), nl.float32), tile((2, 1), nl.float32)
cmd = nisa.reduce_cmd
nisa.tensor_scalar_reduce(dst=y, data=a_t, op0=nl.add, operand0=0.0, reduce_op=nl.add, reduce_cmd=cmd.load_reduce, reduce_init=100.0, reduce_res=r, reduce_res_negate=True)
nisa.tensor_scalar_reduce(dst=y, data=b_t, op0=nl.add, operand0=0.0, reduce_op=nl.add, reduce_cmd=cmd.reduce, reduce_res=s)
return give(r), give(s)
""",
    {"a": Arg("float32", A), "b": Arg("float32", B)},
    [("float32", -(100 + A.sum(1, keepdims=True))), ("float32", 100 + A.sum(1, keepdims=True) + B.sum(1, keepdims=True))],
)

CUM = {
    "add": (lambda v: np.cumsum(v, 1), A),
    "maximum": (lambda v: np.maximum.accumulate(v, 1), X[:, :8]),
    "minimum": (lambda v: np.minimum.accumulate(v, 1), X[:, :8]),
    "multiply": (lambda v: np.cumprod(v, 1), np.array([[1.0, 2.0, -0.5, 4.0], [2.0, 2.0, 2.0, 0.0]])),
}
for name, (f, x) in CUM.items():
    case(
        f"cumulative_{name}",
        f"tensor_scalar_cumulative with {name}: a running value along each lane.",
        f"""
y = tile(x.shape, nl.float32)
nisa.tensor_scalar_cumulative(dst=y, src=fetch(x), op0=nl.multiply, op1=nl.{name}, imm0=2.0)
return give(y)
""",
        {"x": Arg("float32", x)},
        [("float32", f(2.0 * x))],
    )
case(
    "cumulative_commands",
    "load_reduce starts the running value, reduce goes on from the last one.",
    """
ones, y, z = tile((1, 8), nl.float32), tile((1, 8), nl.float32), tile((1, 8), nl.float32)
nisa.memset(dst=ones, value=1.0)
cmd = nisa.reduce_cmd
nisa.tensor_scalar_cumulative(dst=y, src=ones, op0=nl.add, op1=nl.add, imm0=0.0, imm1=5.0, reduce_cmd=cmd.load_reduce)
nisa.tensor_scalar_cumulative(dst=z, src=ones, op0=nl.add, op1=nl.add, imm0=0.0, reduce_cmd=cmd.reduce)
return give(y), give(z)
""",
    {},
    [("float32", ref.ramp(1, 8, start=6)), ("float32", ref.ramp(1, 8, start=14))],
)
case(
    "cumulative_subtract",
    "With subtract the new value comes first: R = x - R.",
    """
y = tile(x.shape, nl.float32)
nisa.tensor_scalar_cumulative(dst=y, src=fetch(x), op0=nl.add, op1=nl.subtract, imm0=0.0)
return give(y)
""",
    {"x": Arg("float32", [[1.0, 5.0, 2.0, 10.0]])},
    [("float32", [[1.0, 4.0, -2.0, 12.0]])],
)


def scan(d0, d1, initial, op0, op1, r0=False, r1=False):
    out, s = np.zeros_like(d0), np.broadcast_to(np.asarray(initial, np.float64), (d0.shape[0], 1))[:, 0]
    for f in range(d0.shape[1]):
        t = op0(s, d0[:, f]) if r0 else op0(d0[:, f], s)
        s = op1(d1[:, f], t) if r1 else op1(t, d1[:, f])
        s = ref.round_float(s, "float32")
        out[:, f] = s
    return out


D0, D1 = ref.pick(23, 3, 9, lo=0, hi=1), ref.pick(24, 3, 9)
for name, ops, np_ops in (("linear", "op0=nl.multiply, op1=nl.add", (np.multiply, np.add)), ("max", "op0=nl.add, op1=nl.maximum", (np.add, np.maximum)), ("difference", "op0=nl.subtract, op1=nl.subtract", (np.subtract, np.subtract))):
    flags = ", reverse0=True, reverse1=True" if name == "difference" else ""
    case(
        f"scan_{name}",
        "tensor_tensor_scan: s = op1(op0(data0, s), data1), from a number or from a value for each lane.",
        f"""
p, q = fetch(d0), fetch(d1)
a, b = tile(d0.shape, nl.float32), tile(d0.shape, nl.float32)
nisa.tensor_tensor_scan(dst=a, data0=p, data1=q, initial=0.0, {ops}{flags})
nisa.tensor_tensor_scan(dst=b, data0=p, data1=q, initial=fetch(v), {ops}{flags})
return give(a), give(b)
""",
        {"d0": Arg("float32", D0), "d1": Arg("float32", D1), "v": Arg("float32", V)},
        [Out("float32", scan(D0, D1, i, *np_ops, bool(flags), bool(flags)), rtol=1e-6, atol=1e-6) for i in (0.0, V)],
    )
case(
    "scan_in_two_pieces",
    "A scan goes on from the last column of the piece before.",
    """
p, q = fetch(d0), fetch(d1)
y = tile(d0.shape, nl.float32)
nisa.tensor_tensor_scan(dst=y[:, 0:4], data0=p[:, 0:4], data1=q[:, 0:4], initial=1.0, op0=nl.multiply, op1=nl.add)
nisa.tensor_tensor_scan(dst=y[:, 4:9], data0=p[:, 4:9], data1=q[:, 4:9], initial=y[:, 3:4], op0=nl.multiply, op1=nl.add)
return give(y)
""",
    {"d0": Arg("float32", D0), "d1": Arg("float32", D1)},
    [Out("float32", scan(D0, D1, 1.0, np.multiply, np.add), rtol=1e-6, atol=1e-6)],
)
case(
    "scan_state_is_fp32",
    "The running value stays fp32 when each result is written as bfloat16.",
    """
y = tile(d1.shape, nl.bfloat16)
ones = tile(d1.shape, nl.float32)
nisa.memset(dst=ones, value=1.0)
nisa.tensor_tensor_scan(dst=y, data0=ones, data1=fetch(d1), initial=256.0, op0=nl.multiply, op1=nl.add)
return give(y)
""",
    {"d1": Arg("float32", np.full((1, 8), 0.25))},
    [("bfloat16", ref.round_float(256 + ref.ramp(1, 8, start=0.25, step=0.25), "bfloat16"))],
)

B1 = ref.pick(25, 3, 30, lo=-1, hi=3)
B2 = ref.pick(26, 3, 13, lo=10, hi=12)


def stats(x):
    out = []
    for part in (x[:, 0::2], x[:, 1::2]):
        out += [np.full(x.shape[0], part.shape[1], np.float64), part.mean(1), part.var(1) * part.shape[1]]
    return np.stack(out, 1)


case(
    "bn_stats",
    "bn_stats: count, mean and sum of squared deviations of the even and of the odd elements.",
    """
a, b = tile((3, 6), nl.float32), tile((3, 6), nl.float32)
nisa.bn_stats(dst=a, data=fetch(x))
nisa.bn_stats(dst=b, data=fetch(y))
return give(a), give(b)
""",
    {"x": Arg("float32", B1), "y": Arg("float32", B2)},
    [Out("float32", stats(B1), rtol=2e-6, atol=1e-6), Out("float32", stats(B2), rtol=2e-6, atol=2e-6)],
)
both = np.concatenate([B1, B2], 1)
case(
    "bn_aggr",
    "bn_aggr joins the statistics of pieces of different length into mean and variance.",
    """
s = tile((3, 12), nl.float32)
nisa.bn_stats(dst=s[:, 0:6], data=fetch(x))
nisa.bn_stats(dst=s[:, 6:12], data=fetch(y))
m = tile((3, 2), nl.float32)
nisa.bn_aggr(dst=m, data=s)
return give(m)
""",
    {"x": Arg("float32", B1), "y": Arg("float32", B2)},
    [Out("float32", np.stack([both.mean(1), both.var(1)], 1), rtol=2e-6)],
)
FP32_MIN = float(-np.finfo(np.float32).max)
lo, hi = np.array([[2.0], [0.0]]), np.array([[5.0], [3.0]])
S = ref.pick(27, 2, 8)
k = 1 + np.arange(8)[None, :]
inside = (k >= lo) & (k < hi)
case(
    "range_select",
    "range_select keeps the elements whose index lies between two numbers of the lane.",
    f"""
y, r = tile(x.shape, nl.float32), tile((2, 1), nl.float32)
nisa.range_select(dst=y, on_true_tile=fetch(x), comp_op0=nl.greater_equal, comp_op1=nl.less, bound0=fetch(lo), bound1=fetch(hi), range_start=1, on_false_value={FP32_MIN!r}, reduce_res=r)
return give(y), give(r)
""",
    {"x": Arg("float32", S), "lo": Arg("float32", lo), "hi": Arg("float32", hi)},
    [("float32", np.where(inside, S, FP32_MIN)), ("float32", np.where(inside, S, FP32_MIN).max(1, keepdims=True))],
)
mask = np.array([[1, 0, 0, 2, 1, 0, 0, 255], [0, 0, 1, 1, 0, 1, 0, 0]])
case(
    "select_reduce",
    "select_reduce chooses by a mask between a tile and a number of the lane, and takes the maximum.",
    """
x_t, m_t, f_t = fetch(x), fetch(m), fetch(f)
y, z, r = tile(x.shape, nl.float32), tile(x.shape, nl.float32), tile((2, 1), nl.float32)
nisa.select_reduce(dst=y, predicate=m_t, on_true=x_t, on_false=f_t, reduce_res=r, reduce_cmd=nisa.reduce_cmd.reset_reduce)
nisa.select_reduce(dst=z, predicate=m_t, on_true=x_t, on_false=-9.0, reverse_pred=True)
return give(y), give(r), give(z)
""",
    {"x": Arg("float32", S), "m": Arg("uint8", mask), "f": Arg("float32", hi)},
    [("float32", np.where(mask != 0, S, hi)), ("float32", np.where(mask != 0, S, hi).max(1, keepdims=True)), ("float32", np.where(mask != 0, -9.0, S))],
)
