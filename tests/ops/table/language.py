"""nki.language: creation, movement, element-wise functions, reductions, normalisation."""
import numpy as np

import ref
from make import Arg, Out, case

X, Y = ref.pick(71, 3, 8), ref.pick(72, 3, 8)
Y[0, :4] = X[0, :4]
X[1, :3] = 0.0
POS = ref.pick(73, 3, 8, lo=0.125, hi=4)

case(
    "nl_create",
    "zeros, ones, full, zeros_like, empty_like.",
    """
x_t = nl.load(x)
a, b, c = nl.zeros((2, 3), dtype=nl.float32, buffer=nl.sbuf), nl.ones((2, 3), nl.int32), nl.full((2, 3), 2.5, nl.bfloat16)
d = nl.zeros_like(x_t)
e = nl.empty_like(x_t, dtype=nl.int32)
assert d.shape == x.shape and d.dtype == x.dtype and e.shape == x.shape and e.dtype == nl.int32
return give(a), give(b), give(c), give(d)
""",
    {"x": Arg("float32", X)},
    [("float32", np.zeros((2, 3))), ("int32", np.ones((2, 3))), ("bfloat16", np.full((2, 3), 2.5)), ("float32", np.zeros((3, 8)))],
)
case(
    "nl_load_store",
    "nl.load and nl.store are DMAs; load can convert.",
    """
out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
t = nl.load(x[0:2, :], dtype=nl.bfloat16)
nl.store(out[0:2, :], value=t)
nl.store(out[2:3, :], nl.load(x[2:3, :]))
return out
""",
    {"x": Arg("float32", X + 1 / 256)},
    [("float32", np.concatenate([ref.round_float(X[:2] + 1 / 256, "bfloat16"), X[2:] + 1 / 256]))],
)
case(
    "nl_transposes",
    "load_transpose2d transposes on the way in; transpose gives a PSUM tile.",
    """
a = nl.load_transpose2d(x)
b = nl.copy(nl.transpose(nl.load(x)))
return give(a), give(b)
""",
    {"x": Arg("float32", X)},
    [("float32", X.T), ("float32", X.T)],
)
case(
    "nl_matmul",
    "nl.matmul with the left operand already transposed; its result is in PSUM.",
    """
r = nl.matmul(nl.load(x), nl.load(y), transpose_x=True)
assert r.buffer == nl.psum
return give(nl.copy(r))
""",
    {"x": Arg("float32", X), "y": Arg("float32", Y)},
    [Out("float32", X.T @ Y, atol=1e-5)],
)
case(
    "nl_copy_cast",
    "nl.copy with a type converts.",
    "return give(nl.copy(nl.load(x), dtype=nl.int32)), give(nl.copy(nl.load(x)))",
    {"x": Arg("float32", X * 10)},
    [("int32", ref.round_int(X * 10, "int32")), ("float32", X * 10)],
)
case(
    "nl_gather_flattened",
    "gather_flattened picks from each lane's own row.",
    "return give(nl.gather_flattened(nl.load(x), nl.load(i)))",
    {"x": Arg("float32", X), "i": Arg("uint32", [[0, 7, 3], [1, 1, 2], [6, 5, 4]])},
    [("float32", np.take_along_axis(X, np.array([[0, 7, 3], [1, 1, 2], [6, 5, 4]]), 1))],
)
case(
    "nl_broadcast_to",
    "broadcast_to along the free dimension and along the lanes.",
    """
x_t = nl.load(x)
a = nl.broadcast_to(x_t[:, 0:1], (3, 5))
b = nl.broadcast_to(x_t[0:1, :], (4, 8))
return give(nl.copy(a)), give(nl.copy(b))
""",
    {"x": Arg("float32", X)},
    [("float32", np.tile(X[:, 0:1], (1, 5))), ("float32", np.tile(X[0:1], (4, 1)))],
)
case(
    "nl_expand_dims",
    "expand_dims is a view.",
    """
v = nl.expand_dims(nl.load(x), 1)
assert v.shape == (3, 1, 8)
return give(nl.copy(v))
""",
    {"x": Arg("float32", X)},
    [("float32", X[:, None])],
)
case(
    "nl_where",
    "where chooses between tiles and numbers.",
    """
x_t, y_t = nl.load(x), nl.load(y)
m = nl.greater(x_t, y_t)
return give(nl.where(m, x_t, y_t)), give(nl.where(m, x_t, -1.0))
""",
    {"x": Arg("float32", X), "y": Arg("float32", Y)},
    [("float32", np.maximum(X, Y)), ("float32", np.where(X > Y, X, -1.0))],
)

BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "logical_and": lambda x, y: (x != 0) & (y != 0),
    "logical_or": lambda x, y: (x != 0) | (y != 0),
    "logical_xor": lambda x, y: (x != 0) ^ (y != 0),
}
for name, f in BINARY.items():
    logical = name.startswith("logical")
    x, y = ((X > 0) * 1.0, (Y > 0) * 1.0) if logical else (X, Y)
    s = 1.0 if logical else 0.5
    case(
        f"nl_{name}",
        f"nl.{name}: two tiles, a tile and a number, and a column against a tile.",
        f"""
x_t, y_t = nl.load(x), nl.load(y)
return give(nl.{name}(x_t, y_t)), give(nl.{name}(x_t, {s})), give(nl.{name}(x_t, y_t[:, 1:2]))
""",
        {"x": Arg("float32", x), "y": Arg("float32", y)},
        [("float32", f(x, y) * 1.0), ("float32", f(x, s) * 1.0), ("float32", f(x, y[:, 1:2]) * 1.0)],
    )
UNARY = {
    "abs": (np.abs, X, 0, 0),
    "square": (np.square, X, 0, 0),
    "negative": (np.negative, X, 0, 0),
    "sign": (np.sign, X, 0, 0),
    "relu": (lambda v: np.maximum(v, 0), X, 0, 0),
    "ceil": (np.ceil, X * 2.3, 0, 0),
    "floor": (np.floor, X * 2.3, 0, 0),
    "trunc": (np.trunc, X * 2.3, 0, 0),
    "exp": (np.exp, X, 1e-6, 0),
    "log": (np.log, POS, 1e-6, 1e-7),
    "sqrt": (np.sqrt, POS, 1e-6, 0),
    "rsqrt": (lambda v: 1 / np.sqrt(v), POS, 1e-6, 0),
    "reciprocal": (lambda v: 1 / v, POS, 1e-6, 0),
    "sin": (np.sin, X * 6, 2e-6, 5e-7),
    "cos": (np.cos, X * 6, 2e-6, 5e-7),
    "tan": (np.tan, X * 0.5, 3e-6, 1e-6),
    "tanh": (np.tanh, X, 1e-6, 0),
    "arctan": (np.arctan, X * 0.5, 1e-6, 0),
    "sigmoid": (ref.sigmoid, X, 2e-6, 0),
    "silu": (lambda v: v * ref.sigmoid(v), X, 2e-6, 1e-7),
    "silu_dx": (ref.silu_dx, X, 2e-6, 1e-6),
    "gelu": (ref.gelu, X, 2e-6, 1e-6),
    "gelu_dx": (ref.gelu_dx, X, 2e-6, 1e-6),
    "gelu_apprx_tanh": (ref.gelu_tanh, X, 2e-6, 1e-6),
    "gelu_apprx_sigmoid": (ref.gelu_sigmoid, X, 3e-6, 1e-7),
    "gelu_apprx_sigmoid_dx": (ref.gelu_sigmoid_dx, X, 3e-6, 1e-6),
    "mish": (lambda v: v * np.tanh(ref.softplus(v)), X, 3e-6, 1e-7),
    "softplus": (ref.softplus, X, 2e-6, 1e-7),
    "erf": (ref.erf, X, 1e-6, 1e-7),
    "erf_dx": (lambda v: 2 / np.sqrt(np.pi) * np.exp(-v * v), X, 5e-6, 1e-9),
}
for name, (f, x, rtol, atol) in UNARY.items():
    x = ref.round_float(x, "float32")
    case(
        f"nl_{name}",
        f"nl.{name} of a tile, in its own type and as bfloat16.",
        f"""
x_t = nl.load(x)
return give(nl.{name}(x_t)), give(nl.{name}(x_t, dtype=nl.bfloat16))
""",
        {"x": Arg("float32", x)},
        [Out("float32", f(x), rtol=rtol, atol=atol), Out("bfloat16", f(x), rtol=2**-8, atol=atol + 1e-9)],
    )
I, J = np.array([[12, -7, 255, 2**30, -1, 0]]), np.array([[3, 5, 15, 7, 2**20, 9]])
S = np.array([[1, 3, 4, 0, 2, 5]])
u32 = lambda v: np.asarray(v, np.int64) & 0xFFFFFFFF
i32 = lambda v: (u32(v) ^ 0x80000000) - 0x80000000
for name, f, y in (("bitwise_and", np.bitwise_and, J), ("bitwise_or", np.bitwise_or, J), ("bitwise_xor", np.bitwise_xor, J), ("left_shift", np.left_shift, S), ("right_shift", lambda a, b: u32(a) >> b, S)):
    case(
        f"nl_{name}",
        f"nl.{name} of int32 tiles and of a tile and a number.",
        f"""
x_t, y_t = nl.load(x), nl.load(y)
return give(nl.{name}(x_t, y_t)), give(nl.{name}(x_t, 3))
""",
        {"x": Arg("int32", I), "y": Arg("int32", y)},
        [("int32", i32(f(I, y))), ("int32", i32(f(I, np.int64(3))))],
    )
case("nl_logical_not", "logical_not of zeros and ones.", "return give(nl.logical_not(nl.load(x)))", {"x": Arg("float32", (X > 0) * 1.0)}, [("float32", (X <= 0) * 1.0)])
case(
    "nl_power",
    "nl.power of two tiles.",
    "return give(nl.power(nl.load(x), nl.load(y)))",
    {"x": Arg("float32", POS), "y": Arg("float32", Y)},
    [Out("float32", POS**Y, rtol=3e-6)],
)
case(
    "nl_compare_mask_type",
    "A comparison can give a mask type.",
    """
m = nl.less(nl.load(x), nl.load(y), dtype=nl.uint8)
assert m.dtype == nl.uint8
return give(m)
""",
    {"x": Arg("float32", X), "y": Arg("float32", Y)},
    [("uint8", (X < Y) * 1)],
)
case(
    "nl_chain_bf16",
    "Functions keep their input's type: each step rounds to bfloat16.",
    """
x_t = nl.load(x)
y = nl.add(nl.multiply(x_t, x_t), 1.0)
assert y.dtype == nl.bfloat16
return give(y)
""",
    {"x": Arg("bfloat16", ref.round_float(X, "bfloat16"))},
    [("bfloat16", ref.round_float(ref.round_float(ref.round_float(X, "bfloat16") ** 2, "bfloat16") + 1, "bfloat16"))],
)
X3 = ref.pick(74, 3, 4, 5)
for name, f in (("sum", np.sum), ("max", np.max), ("min", np.min), ("mean", np.mean), ("prod", np.prod)):
    x = np.exp2(np.rint(X3)) if name == "prod" else X3
    tol = 1e-5 if name in ("sum", "mean") else 0
    case(
        f"nl_reduce_{name}",
        f"nl.{name} over the last axis, keeping it, and over both free axes.",
        f"""
x_t = nl.load(x)
return give(nl.{name}(x_t, axis=[2])), give(nl.{name}(x_t, axis=2, keepdims=True)), give(nl.{name}(x_t, axis=[1, 2], keepdims=True))
""",
        {"x": Arg("float32", x)},
        [Out("float32", f(x, axis=2), atol=tol), Out("float32", f(x, axis=2, keepdims=True), atol=tol), Out("float32", f(x, axis=(1, 2), keepdims=True), atol=tol * 2)],
    )
case("nl_var", "nl.var: population variance.", "return give(nl.var(nl.load(x), axis=1, keepdims=True))", {"x": Arg("float32", X)}, [Out("float32", X.var(1, keepdims=True), rtol=2e-6)])
case("nl_all", "nl.all: whether every element is true.", "return give(nl.all(nl.load(x), axis=1))", {"x": Arg("float32", [[1.0, 1, 1], [1, 0, 1]])}, [("float32", [[1.0], [0.0]])])
e = np.exp(X - X.max(1, keepdims=True))
case("nl_softmax", "nl.softmax of each row.", "return give(nl.softmax(nl.load(x), axis=-1))", {"x": Arg("float32", X)}, [Out("float32", e / e.sum(1, keepdims=True), rtol=3e-6)])
W = ref.pick(75, 1, 8, lo=0.5, hi=1.5)
case(
    "nl_rms_norm",
    "nl.rms_norm with a weight for each column.",
    """
w_t = nl.broadcast_to(nl.load(w), (3, 8))
return give(nl.rms_norm(nl.load(x), w_t, axis=[1], n=8, epsilon=1e-5))
""",
    {"x": Arg("float32", X), "w": Arg("float32", W)},
    [Out("float32", X / np.sqrt((X**2).mean(1, keepdims=True) + 1e-5) * W, rtol=3e-6)],
)
case("nl_identity", "shared_identity_matrix, for transposes by hand.", "t = nl.shared_identity_matrix(5, dtype=nl.float32)\ny = tile((5, 5), nl.float32)\nnisa.tensor_copy(dst=y, src=t)\nreturn give(y)", {}, [("float32", np.eye(5))])
case(
    "nl_broadcast_rules",
    "Language functions broadcast as NumPy does: a column with a row, a row with a matrix.",
    """
x_t = nl.load(x)
a = nl.add(x_t[:, 0:1], nl.load(r))
b = nl.multiply(x_t, nl.load(r))
return give(a), give(b)
""",
    {"x": Arg("float32", X), "r": Arg("float32", Y[0:1])},
    [("float32", X[:, 0:1] + Y[0:1]), ("float32", X * Y[0:1])],
)
case(
    "nl_dropout_certain",
    "nl.dropout with rates 0 and 1.",
    """
x_t = nl.load(x)
return give(nl.dropout(x_t, 0.0)), give(nl.dropout(x_t, 1.0))
""",
    {"x": Arg("float32", POS)},
    [("float32", POS), ("float32", POS * 0)],
)
case(
    "nl_device_print",
    "device_print shows a tensor while the kernel runs and changes nothing.",
    """
t = nl.load(x)
nl.device_print("t is", t)
return give(t)
""",
    {"x": Arg("float32", X)},
    [("float32", X)],
)
