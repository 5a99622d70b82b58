"""The ALU operators in every instruction that takes them."""
import numpy as np

import ref
from make import Arg, Out, case

truth = lambda v: (np.asarray(v) != 0)
BINARY = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": lambda x, y: (x == y) * 1.0,
    "not_equal": lambda x, y: (x != y) * 1.0,
    "less": lambda x, y: (x < y) * 1.0,
    "less_equal": lambda x, y: (x <= y) * 1.0,
    "greater": lambda x, y: (x > y) * 1.0,
    "greater_equal": lambda x, y: (x >= y) * 1.0,
    "logical_and": lambda x, y: (truth(x) & truth(y)) * 1.0,
    "logical_or": lambda x, y: (truth(x) | truth(y)) * 1.0,
    "logical_xor": lambda x, y: (truth(x) ^ truth(y)) * 1.0,
}
X = ref.pick(1, 3, 8)
Y = ref.pick(2, 3, 8)
Y[0, :4] = X[0, :4]  # some equal, some zero
X[1, :3] = Y[1, 1:4] = 0.0
V = np.array([[0.5], [0.0], [-1.25]])

for name, op in BINARY.items():
    logical = name.startswith("logical")
    x, y, v, s = (truth(X) * 1.0, truth(Y) * 1.0, truth(V) * 1.0, 1.0) if logical else (X, Y, V, 0.25)
    case(
        f"alu_{name}",
        f"{name}: of two tiles, of a tile and a number, of a tile and a number per lane, and with the operands exchanged.",
        f"""
x_t, y_t, v_t = fetch(x), fetch(y), fetch(v)
a, b, c, d, e = [tile(x.shape, nl.float32) for _ in range(5)]
nisa.tensor_tensor(dst=a, data1=x_t, data2=y_t, op=nl.{name})
nisa.tensor_scalar(dst=b, data=x_t, op0=nl.{name}, operand0={s})
nisa.tensor_scalar(dst=c, data=x_t, op0=nl.{name}, operand0=v_t)
nisa.tensor_scalar(dst=d, data=x_t, op0=nl.{name}, operand0=v_t, reverse0=True)
nisa.scalar_tensor_tensor(dst=e, data=x_t, op0=nl.{name}, operand0=v_t, op1=nl.{name}, operand1=y_t)
return give(a), give(b), give(c), give(d), give(e)
""",
        {"x": Arg("float32", x), "y": Arg("float32", y), "v": Arg("float32", v)},
        [("float32", r) for r in (op(x, y), op(x, s), op(x, v), op(v, x), op(op(x, v), y))],
    )

for first, second in (("subtract", "multiply"), ("multiply", "subtract"), ("subtract", "maximum"), ("greater", "subtract")):
    f, g = BINARY[first], BINARY[second]
    calls, results = "", []
    for i, (r0, r1) in enumerate([(False, False), (True, False), (False, True), (True, True)]):
        calls += f"nisa.tensor_scalar(dst=r[{i}], data=x_t, op0=nl.{first}, operand0=0.5, reverse0={r0}, op1=nl.{second}, operand1=v_t, reverse1={r1})\n"
        t = f(0.5, X) if r0 else f(X, 0.5)
        results.append(("float32", g(V, t) if r1 else g(t, V)))
    case(
        f"two_ops_{first}_{second}",
        f"tensor_scalar with {first} then {second}: one pass, each with its own reverse flag.",
        f"""
x_t, v_t = fetch(x), fetch(v)
r = [tile(x.shape, nl.float32) for _ in range(4)]
{calls}return tuple(give(t) for t in r)
""",
        {"x": Arg("float32", X), "v": Arg("float32", V)},
        results,
    )
    calls, results = "", []
    for i, (r0, r1) in enumerate([(False, False), (True, False), (False, True), (True, True)]):
        calls += f"nisa.scalar_tensor_tensor(dst=r[{i}], data=x_t, op0=nl.{first}, operand0=v_t, op1=nl.{second}, operand1=y_t, reverse0={r0}, reverse1={r1})\n"
        t = f(V, X) if r0 else f(X, V)
        results.append(("float32", g(Y, t) if r1 else g(t, Y)))
    case(
        f"stt_{first}_{second}",
        f"scalar_tensor_tensor with {first} then {second} and both reverse flags.",
        f"""
x_t, y_t, v_t = fetch(x), fetch(y), fetch(v)
r = [tile(x.shape, nl.float32) for _ in range(4)]
{calls}return tuple(give(t) for t in r)
""",
        {"x": Arg("float32", X), "y": Arg("float32", Y), "v": Arg("float32", V)},
        results,
    )


def wrap(v, dtype):
    lo, hi = ref.INTS[dtype]
    n = hi - lo + 1
    return (np.asarray(v, np.int64) - lo) % n + lo


def unsigned(v, dtype):
    lo, hi = ref.INTS[dtype]
    return np.asarray(v, np.int64) % (hi - lo + 1)


BITS = {
    "bitwise_and": lambda x, y, d: wrap(x & y, d),
    "bitwise_or": lambda x, y, d: wrap(x | y, d),
    "bitwise_xor": lambda x, y, d: wrap(x ^ y, d),
    "left_shift": lambda x, y, d: wrap(x << y, d),
    "right_shift": lambda x, y, d: wrap(unsigned(x, d) >> y, d),  # logical, also for signed types
}
for name, op in BITS.items():
    args, body, results = {}, "", []
    for dtype, bits in (("int32", 32), ("uint32", 32), ("int16", 16), ("uint16", 16), ("uint8", 8), ("int8", 8)):
        rng = np.random.RandomState(bits + len(dtype))
        lo, hi = ref.INTS[dtype]
        x = rng.randint(lo, hi + 1, (2, 6), np.int64)
        shift = name.endswith("shift")
        y = rng.randint(0, bits, (2, 6)).astype(np.int64) if shift else rng.randint(lo, hi + 1, (2, 6), np.int64)
        s = 3 if shift else 90
        args[f"x_{dtype}"], args[f"y_{dtype}"] = Arg(dtype, x), Arg(dtype, y)
        body += f"x, y = fetch(x_{dtype}), fetch(y_{dtype})\na, b = tile(x.shape, x.dtype), tile(x.shape, x.dtype)\n"
        body += f"nisa.tensor_tensor(dst=a, data1=x, data2=y, op=nl.{name})\nnisa.tensor_scalar(dst=b, data=x, op0=nl.{name}, operand0={s})\n"
        body += "results += [give(a), give(b)]\n"
        results += [(dtype, op(x, y, dtype)), (dtype, op(x, np.int64(s), dtype))]
    case(f"bits_{name}", f"{name} on bit patterns of every integer type.", f"results = []\n{body}return tuple(results)", args, results)

bits_x = np.array([[0, 1, -1, 12345678, -(2**31), 2**31 - 1]])
case(
    "bits_two_ops",
    "Two bit operations in one pass: a shift, then a mask.",
    """
y = tile(x.shape, nl.int32)
nisa.tensor_scalar(dst=y, data=fetch(x), op0=nl.right_shift, operand0=4, op1=nl.bitwise_and, operand1=255)
return give(y)
""",
    {"x": Arg("int32", bits_x)},
    [("int32", (unsigned(bits_x, "int32") >> 4) & 255)],
)
case(
    "bits_invert",
    "invert flips every bit; as a language function too.",
    """
x_t = fetch(x)
return give(nl.invert(x_t)), give(nl.bitwise_xor(x_t, x_t))
""",
    {"x": Arg("int32", bits_x)},
    [("int32", ~bits_x), ("int32", bits_x * 0)],
)

I = np.array([[16777217, 3, -7, 2**31 - 1, 123456789, -(2**31)]], np.int64)
J = np.array([[2, -5, -7, 1, 1000003, -1]], np.int64)
for name in ("add", "subtract", "multiply"):
    op = BINARY[name]
    case(
        f"int32_{name}",
        f"{name} of int32 tiles: exact 32-bit integers by default (GpSimd), fp32 on the Vector engine.",
        f"""
x_t, y_t, z_t = fetch(x), fetch(y), fetch(z)
a, b = tile(x.shape, nl.int32), tile(z.shape, nl.int32)
nisa.tensor_tensor(dst=a, data1=x_t, data2=y_t, op=nl.{name})
nisa.tensor_tensor(dst=b, data1=z_t, data2=z_t, op=nl.{name}, engine=nisa.engine.vector)
return give(a), give(b)
""",
        {"x": Arg("int32", I[:, [0, 1, 2, 4]]), "y": Arg("int32", J[:, [0, 1, 2, 4]] % 100), "z": Arg("int32", [[16777217, 5, -12345]])},
        [
            ("int32", op(I[:, [0, 1, 2, 4]], J[:, [0, 1, 2, 4]] % 100)) if name != "multiply" else ("int32", wrap(I[:, [0, 1, 2, 4]] * (J[:, [0, 1, 2, 4]] % 100), "int32")),
            ("int32", ref.cast(ref.round_float(op(ref.round_float([[16777217.0, 5, -12345]], "float32"), ref.round_float([[16777217.0, 5, -12345]], "float32")), "float32"), "int32")),
        ],
    )

P = np.array([[0.5, 1.0, 2.0, 3.0, 9.0, 0.25]])
Q = np.array([[2.0, -3.0, 0.5, 1.5, 0.0, -0.5]])
case(
    "power",
    "power of two tiles runs on GpSimd.",
    """
y = tile(x.shape, nl.float32)
nisa.tensor_tensor(dst=y, data1=fetch(x), data2=fetch(e), op=nl.power)
return give(y)
""",
    {"x": Arg("float32", P), "e": Arg("float32", Q)},
    [Out("float32", P**Q, rtol=3e-6)],
)
case(
    "alu_rsqrt",
    "tensor_scalar with rsqrt: the GpSimd engine's reciprocal square root.",
    """
y = tile(x.shape, nl.float32)
nisa.tensor_scalar(dst=y, data=fetch(x), op0=nl.add, operand0=0.25)
nisa.tensor_scalar(dst=y, data=y, op0=nl.rsqrt, operand0=0.0)
return give(y)
""",
    {"x": Arg("float32", P)},
    [Out("float32", 1 / np.sqrt(P + 0.25), rtol=1e-6)],
)
case(
    "alu_abs",
    "abs as an ALU operator has no operand.",
    """
y = tile(x.shape, nl.float32)
nisa.tensor_scalar(dst=y, data=fetch(x), op0=nl.abs, operand0=0.0)
return give(y)
""",
    {"x": Arg("float32", X)},
    [("float32", np.abs(X))],
)
case(
    "alu_abs_max_min",
    "abs_max and abs_min give the operand of larger or smaller magnitude with its sign; on a tie the second.",
    """
x_t, y_t = fetch(x), fetch(y)
a, b = tile(x.shape, nl.float32), tile(x.shape, nl.float32)
nisa.tensor_tensor(dst=a, data1=x_t, data2=y_t, op=nl.abs_max)
nisa.tensor_tensor(dst=b, data1=x_t, data2=y_t, op=nl.abs_min)
return give(a), give(b)
""",
    {"x": Arg("float32", [[-5.0, 1.0, 2.0, -3.0]]), "y": Arg("float32", [[3.0, -1.0, -4.0, 3.0]])},
    [("float32", [[-5.0, -1.0, -4.0, 3.0]]), ("float32", [[3.0, -1.0, 2.0, 3.0]])],
    target="trn3",
)
case(
    "reciprocal",
    "nisa.reciprocal of fp32 and bf16 data.",
    """
x_t = fetch(x)
a, b = tile(x.shape, nl.float32), tile(x.shape, nl.bfloat16)
nisa.reciprocal(dst=a, data=x_t)
nisa.reciprocal(dst=b, data=x_t)
return give(a), give(b)
""",
    {"x": Arg("float32", [[1.0, 2.0, 3.0, -7.0, 0.1015625, 1e10, -1e-10 * 0 + 4096.0]])},
    [
        Out("float32", 1 / np.array([[1.0, 2.0, 3.0, -7.0, 0.1015625, 1e10, 4096.0]]), rtol=1.2e-7),
        Out("bfloat16", 1 / np.array([[1.0, 2.0, 3.0, -7.0, 0.1015625, 1e10, 4096.0]]), rtol=2**-8),
    ],
)
case(
    "compare_to_uint8",
    "A comparison can write a narrow integer: 1 or 0.",
    """
m = tile(x.shape, nl.uint8)
nisa.tensor_tensor(dst=m, data1=fetch(x), data2=fetch(y), op=nl.greater)
return give(m)
""",
    {"x": Arg("float32", X), "y": Arg("float32", Y)},
    [("uint8", (X > Y) * 1)],
)
case(
    "alu_in_place",
    "An instruction may write over its own input.",
    """
t = fetch(x)
nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.add)
nisa.tensor_scalar(dst=t, data=t, op0=nl.subtract, operand0=1.0, reverse0=True)
return give(t)
""",
    {"x": Arg("float32", X)},
    [("float32", 1 - 2 * X)],
)
case(
    "alu_mixed_types",
    "Operands of different types meet in fp32: bf16 data, an int8 tile, an fp32 result.",
    """
y = tile(a.shape, nl.float32)
nisa.tensor_tensor(dst=y, data1=fetch(a), data2=fetch(b), op=nl.multiply)
nisa.scalar_tensor_tensor(dst=y, data=y, op0=nl.add, operand0=1.0, op1=nl.subtract, operand1=fetch(b))
return give(y)
""",
    {"a": Arg("bfloat16", X), "b": Arg("int8", np.rint(Y * 40))},
    [("float32", X * np.rint(Y * 40) + 1 - np.rint(Y * 40))],
)
case(
    "alu_same_count_other_rank",
    "Element-wise operands need the same lanes and the same number of elements, not the same shape.",
    """
y = tile((3, 8), nl.float32)
nisa.tensor_tensor(dst=y, data1=fetch(a), data2=fetch(b), op=nl.add)
return give(y)
""",
    {"a": Arg("float32", X.reshape(3, 2, 4)), "b": Arg("float32", Y.reshape(3, 4, 2))},
    [("float32", X + Y)],
)
case(
    "alu_psum_operand",
    "One of two tile operands may be in PSUM, and so may the result.",
    """
p = bank(x.shape)
nisa.tensor_copy(dst=p, src=fetch(x))
q = bank(x.shape)
nisa.tensor_tensor(dst=q, data1=p, data2=fetch(y), op=nl.subtract)
y_t = tile(x.shape, nl.float32)
nisa.tensor_copy(dst=y_t, src=q)
return give(y_t)
""",
    {"x": Arg("float32", X), "y": Arg("float32", Y)},
    [("float32", X - Y)],
)
