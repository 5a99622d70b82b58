"""The Scalar engine's functions, its scale and bias, and its accumulator."""
import numpy as np

import ref
from make import Arg, Out, case

SMOOTH = ref.pick(11, 2, 12, lo=-4.0, hi=4.0)
POSITIVE = ref.pick(12, 2, 12, lo=0.0625, hi=8.0)
BIAS = np.array([[0.25], [-0.5]])

FUNCTIONS = {
    "copy": (lambda x: x, SMOOTH, 0, 0),
    "square": (lambda x: x * x, SMOOTH, 0, 0),
    "abs": (np.abs, SMOOTH, 0, 0),
    "relu": (lambda x: np.maximum(x, 0), SMOOTH, 0, 0),
    "sign": (np.sign, SMOOTH, 0, 0),
    "sigmoid": (ref.sigmoid, SMOOTH, 2e-6, 0),
    "gelu": (ref.gelu, SMOOTH, 2e-6, 1e-6),
    "gelu_dx": (ref.gelu_dx, SMOOTH, 2e-6, 1e-6),
    "gelu_apprx_tanh": (ref.gelu_tanh, SMOOTH, 2e-6, 1e-6),
    "gelu_apprx_sigmoid": (ref.gelu_sigmoid, SMOOTH, 3e-6, 1e-7),
    "gelu_apprx_sigmoid_dx": (ref.gelu_sigmoid_dx, SMOOTH, 3e-6, 1e-6),
    "silu": (lambda x: x * ref.sigmoid(x), SMOOTH, 2e-6, 1e-7),
    "silu_dx": (ref.silu_dx, SMOOTH, 2e-6, 1e-6),
    "tanh": (np.tanh, SMOOTH, 1e-6, 0),
    "softplus": (ref.softplus, SMOOTH, 2e-6, 1e-7),
    "mish": (lambda x: x * np.tanh(ref.softplus(x)), SMOOTH, 3e-6, 1e-7),
    "erf": (ref.erf, SMOOTH, 1e-6, 1e-7),
    "erf_dx": (lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x), SMOOTH, 5e-6, 1e-9),
    "exp": (np.exp, SMOOTH, 1e-6, 0),
    "sin": (np.sin, ref.pick(13, 2, 12, lo=-2.5, hi=2.5), 1e-6, 2e-7),
    "arctan": (np.arctan, ref.pick(14, 2, 12, lo=-1.0, hi=1.0), 1e-6, 0),
    "log": (np.log, POSITIVE, 1e-6, 1e-7),
    "sqrt": (np.sqrt, POSITIVE, 1e-6, 0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE, 1e-6, 0),
    "reciprocal": (lambda x: 1 / x, POSITIVE, 1e-6, 0),
}
for name, (f, x, rtol, atol) in FUNCTIONS.items():
    bias = np.abs(BIAS) * (1 if x is POSITIVE else 0.25 * np.sign(BIAS))
    with_bias = f(x * 0.5 + bias)
    case(
        f"act_{name}",
        f"activation {name}: alone, of data * scale + bias, and written as bfloat16.",
        f"""
x_t, b_t = fetch(x), fetch(b)
r, s, t = tile(x.shape, nl.float32), tile(x.shape, nl.float32), tile(x.shape, nl.bfloat16)
nisa.activation(dst=r, op=nl.{name}, data=x_t)
nisa.activation(dst=s, op=nl.{name}, data=x_t, scale=0.5, bias=b_t)
nisa.activation(dst=t, op=nl.{name}, data=x_t)
return give(r), give(s), give(t)
""",
        {"x": Arg("float32", x), "b": Arg("float32", bias)},
        [
            Out("float32", f(x), rtol=rtol, atol=atol),
            Out("float32", with_bias, rtol=rtol + (4e-7 if rtol else 0), atol=atol),
            Out("bfloat16", f(x), rtol=2**-8, atol=atol + 1e-9),
        ],
    )

case(
    "act_scale_per_lane",
    "scale may be a number for each lane, and bias a tile of any type.",
    """
y = tile(x.shape, nl.float32)
nisa.activation(dst=y, op=nl.copy, data=fetch(x), scale=fetch(s), bias=fetch(b))
return give(y)
""",
    {"x": Arg("float32", SMOOTH), "s": Arg("float32", [[2.0], [-0.5]]), "b": Arg("bfloat16", [[1.5], [-3.0]])},
    [("float32", SMOOTH * [[2.0], [-0.5]] + [[1.5], [-3.0]])],
)
case(
    "act_bias_number",
    "On trn2 and later, bias may be a number.",
    """
y = tile(x.shape, nl.float32)
nisa.activation(dst=y, op=nl.relu, data=fetch(x), bias=-0.5, scale=2.0)
return give(y)
""",
    {"x": Arg("float32", SMOOTH)},
    [("float32", np.maximum(SMOOTH * 2 - 0.5, 0))],
)
tiny = 1.0 + 2.0**-23
case(
    "act_fused_multiply_add",
    "data * scale + bias is rounded once: the last bits of the product survive a bias that cancels the rest.",
    """
y = tile(x.shape, nl.float32)
nisa.activation(dst=y, op=nl.copy, data=fetch(x), scale=fetch(s), bias=fetch(b))
return give(y)
""",
    {"x": Arg("float32", [[tiny]]), "s": Arg("float32", [[tiny]]), "b": Arg("float32", [[-(1.0 + 2.0**-22)]])},
    [("float32", [[2.0**-46]])],
)
case(
    "act_psum_input",
    "The Scalar engine reads and writes PSUM.",
    """
p = bank(x.shape)
nisa.tensor_copy(dst=p, src=fetch(x))
q = bank(x.shape)
nisa.activation(dst=q, op=nl.relu, data=p, scale=-1.0)
y = tile(x.shape, nl.float32)
nisa.activation(dst=y, op=nl.copy, data=q)
return give(y)
""",
    {"x": Arg("float32", SMOOTH)},
    [("float32", np.maximum(-SMOOTH, 0))],
)
E = np.exp(SMOOTH)
case(
    "activation_reduce",
    "activation_reduce writes the results and their sum for each lane.",
    """
y, r = tile(x.shape, nl.float32), tile((2, 1), nl.float32)
nisa.activation_reduce(dst=y, op=nl.exp, data=fetch(x), reduce_op=nl.add, reduce_res=r)
return give(y), give(r)
""",
    {"x": Arg("float32", SMOOTH)},
    [Out("float32", E, rtol=1e-6), Out("float32", E.sum(1, keepdims=True), rtol=2e-6)],
)
case(
    "activation_reduce_before_rounding",
    "The sum is of the fp32 results, not of what a narrow destination holds.",
    """
y, r = tile(x.shape, nl.int8), tile((1, 1), nl.float32)
nisa.activation_reduce(dst=y, op=nl.copy, data=fetch(x), reduce_op=nl.add, reduce_res=r)
return give(y), give(r)
""",
    {"x": Arg("float32", [[0.25, 0.25, 0.25, 0.5, 1.5, 2.5]])},
    [("int8", [[0, 0, 0, 0, 2, 2]]), ("float32", [[5.25]])],
)
wide = ref.round_float(np.random.RandomState(5).standard_normal((2, 50)) * np.exp2(np.random.RandomState(6).randint(-8, 9, (2, 50))), "float32")
case(
    "activation_reduce_order",
    "The order of a sum is fixed: 16 partial sums by position, then a tree. This compares bits.",
    """
y, r = tile(x.shape, nl.float32), tile((2, 1), nl.float32)
nisa.activation_reduce(dst=y, op=nl.copy, data=fetch(x), reduce_op=nl.add, reduce_res=r)
return give(r)
""",
    {"x": Arg("float32", wide)},
    [("float32", [[ref.sum16(row)] for row in wide])],
)
A, B, C = ref.ramp(2, 4, start=1), ref.ramp(2, 4, start=10), ref.ramp(2, 4, start=1000)
case(
    "act_accumulator_commands",
    "reset_reduce starts the accumulator, idle leaves it, reduce adds to it, reset clears it before a later reduce.",
    """
a_t, b_t, c_t = fetch(a), fetch(b), fetch(c)
y, r, s = tile(a.shape, nl.float32), tile((2, 1), nl.float32), tile((2, 1), nl.float32)
cmd = nisa.reduce_cmd
nisa.activation(dst=y, op=nl.copy, data=a_t, reduce_op=nl.add, reduce_cmd=cmd.reset_reduce)
nisa.activation(dst=y, op=nl.copy, data=c_t)
nisa.activation(dst=y, op=nl.copy, data=b_t, reduce_op=nl.add, reduce_cmd=cmd.reduce, reduce_res=r)
nisa.activation(dst=y, op=nl.copy, data=c_t, reduce_op=nl.add, reduce_cmd=cmd.reset)
nisa.activation(dst=y, op=nl.square, data=a_t, reduce_op=nl.add, reduce_cmd=cmd.reduce, reduce_res=s)
return give(r), give(s)
""",
    {"a": Arg("float32", A), "b": Arg("float32", B), "c": Arg("float32", C)},
    [("float32", (A + B).sum(1, keepdims=True)), ("float32", (A * A).sum(1, keepdims=True))],
)
case(
    "activate2_stages",
    "activate2 (trn3): two steps before the function, each with a reverse flag.",
    """
x_t = fetch(x)
a, b, c = [tile(x.shape, nl.float32) for _ in range(3)]
nisa.activate2(dst=a, op=nl.relu, data=x_t, imm0=2.0, imm1=1.0, op0=nl.multiply, op1=nl.add)
nisa.activate2(dst=b, op=nl.copy, data=x_t, imm0=2.0, imm1=1.0, op0=nl.multiply, op1=nl.subtract, reverse1=True)
nisa.activate2(dst=c, op=nl.square, data=x_t, imm0=0.5, imm1=0.0, op0=nl.subtract, op1=nl.bypass, reverse0=True)
return give(a), give(b), give(c)
""",
    {"x": Arg("float32", SMOOTH)},
    [("float32", np.maximum(SMOOTH * 2 + 1, 0)), ("float32", 1 - SMOOTH * 2), ("float32", (0.5 - SMOOTH) ** 2)],
    target="trn3",
)
case(
    "activate2_reduce",
    "activate2 (trn3) reduces with maximum too.",
    """
y, r = tile(x.shape, nl.float32), tile((2, 1), nl.float32)
nisa.activate2(dst=y, op=nl.copy, data=fetch(x), imm0=-1.0, imm1=0.0, op0=nl.multiply, op1=nl.bypass, reduce_op=nl.maximum, reduce_res=r, reduce_cmd=nisa.reduce_cmd.reset_reduce)
return give(r)
""",
    {"x": Arg("float32", SMOOTH)},
    [("float32", (-SMOOTH).max(1, keepdims=True))],
    target="trn3",
)
M = SMOOTH.max(1, keepdims=True)
case(
    "exponential",
    "exponential (trn3, Vector): exp(src - max_value) and its running sum.",
    """
m_t, x_t = fetch(m), fetch(x)
y, r = tile(x.shape, nl.float32), tile((2, 1), nl.float32)
cmd = nisa.reduce_cmd
nisa.exponential(dst=y, src=x_t, max_value=m_t, reduce_cmd=cmd.load_reduce, reduce_init=2.0)
nisa.exponential(dst=y, src=x_t, max_value=m_t, reduce_cmd=cmd.reduce, reduce_res=r)
return give(y), give(r)
""",
    {"x": Arg("float32", SMOOTH), "m": Arg("float32", M)},
    [Out("float32", np.exp(SMOOTH - M), rtol=1e-6), Out("float32", 2 + 2 * np.exp(SMOOTH - M).sum(1, keepdims=True), rtol=2e-6)],
    target="trn3",
)
