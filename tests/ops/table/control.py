"""Control: unrolled loops, register loops, registers, arguments, the parts of Python that kernels are written with."""
import numpy as np

import ref
from make import Arg, Out, case

X = ref.ramp(6, 4)
for name in ("affine_range", "sequential_range", "static_range"):
    case(
        f"loop_{name}",
        f"nl.{name} is an unrolled loop with real integers.",
        f"""
y = tile((6, 4), nl.float32)
x_t = fetch(x)
for i in nl.{name}(2):
    for j in nl.{name}(1, 4, 2):
        nisa.tensor_scalar(dst=y[:, 2 * i + j // 2 : 2 * i + j // 2 + 1], data=x_t[:, j : j + 1], op0=nl.multiply, operand0=float(i + 1))
return give(y)
""",
        {"x": Arg("float32", X)},
        [("float32", np.stack([X[:, 1], X[:, 3], 2 * X[:, 1], 2 * X[:, 3]], 1))],
    )
adds = "nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)"
start = "t = tile((1, 2), nl.float32)\nnisa.memset(dst=t, value=0.0)\n"
case(
    "fori_loop",
    "fori_loop with constants, with a step, and with no round at all.",
    f"""
{start}def body(i):
    {adds}

nl.fori_loop(0, 5, body)
nl.fori_loop(1, 8, body, step=3)
nl.fori_loop(4, 4, body)
return give(t)
""",
    {},
    [("float32", [[8.0, 8.0]])],
)
case(
    "fori_loop_lambda_helper",
    "The body may be a function of the file that is given its state.",
    f"""
{start}nl.fori_loop(0, 3, lambda i: bump(t, 2.0))
return give(t)
""",
    {},
    [("float32", [[6.0, 6.0]])],
    before="def bump(t, by):\n    nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=by)\n",
)
case(
    "fori_loop_register_bounds",
    "Both bounds may be registers that come from data.",
    f"""
{start}lo, hi = nisa.register_alloc(), nisa.register_alloc()
nisa.register_load(dst=lo, src=n[0:1, 0:1])
nisa.register_load(dst=hi, src=n[0:1, 1:2])
def body(i):
    {adds}

nl.fori_loop(lo, hi, body)
return give(t)
""",
    {"n": Arg("int32", [[3, 10]])},
    [("float32", [[7.0, 7.0]])],
)
B = ref.ramp(5, 3, 4)
case(
    "fori_loop_addresses",
    "The loop variable addresses memory: block i in, block i out.",
    """
out = nl.ndarray((5, 3, 4), dtype=nl.float32, buffer=nl.shared_hbm)

def body(i):
    t = tile((3, 4), nl.float32)
    nisa.dma_copy(dst=t, src=x.ap(pattern=[[4, 3], [1, 4]], scalar_offset=i, indirect_dim=0))
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=-1.0)
    nisa.dma_copy(dst=out.ap(pattern=[[4, 3], [1, 4]], scalar_offset=i, indirect_dim=0), src=t)

nl.fori_loop(0, 5, body)
return out
""",
    {"x": Arg("float32", B)},
    [("float32", -B)],
)
case(
    "fori_loop_carried",
    "State that a round leaves for the next lives in memory: Fibonacci numbers.",
    """
a, b, c = [tile((1, 1), nl.int32) for _ in range(3)]
nisa.memset(dst=a, value=0)
nisa.memset(dst=b, value=1)

def body(i):
    nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.add)
    nisa.tensor_copy(dst=a, src=b)
    nisa.tensor_copy(dst=b, src=c)

nl.fori_loop(0, 20, body)
return give(a)
""",
    {},
    [("int32", [[6765]])],
)
case(
    "dynamic_range",
    "dynamic_range with start, stop and step, and with a bound from data.",
    f"""
{start}for i in nl.dynamic_range(1, 10, 3):
    {adds}
r = nisa.register_alloc()
nisa.register_load(dst=r, src=n)
for i in nl.dynamic_range(r):
    {adds}
return give(t)
""",
    {"n": Arg("int32", [[4]])},
    [("float32", [[7.0, 7.0]])],
)
case(
    "dynamic_range_nested",
    "A register loop in a register loop.",
    f"""
{start}for i in nl.dynamic_range(3):
    for j in nl.dynamic_range(2):
        {adds}
return give(t)
""",
    {},
    [("float32", [[6.0, 6.0]])],
)
case(
    "dynamic_range_zero",
    "A bound of zero from data: the body never runs.",
    f"""
{start}r = nisa.register_alloc()
nisa.register_load(dst=r, src=n)
for i in nl.dynamic_range(r):
    {adds}
return give(t)
""",
    {"n": Arg("int32", [[0]])},
    [("float32", [[0.0, 0.0]])],
)
case(
    "dynamic_range_ds",
    "nl.ds with the loop variable as its start.",
    """
out = nl.ndarray((6, 4), dtype=nl.float32, buffer=nl.shared_hbm)
for i in nl.dynamic_range(0, 6, 2):
    t = tile((2, 4), nl.float32)
    nisa.dma_copy(dst=t, src=x[nl.ds(i, 2), :])
    nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=0.5)
    nisa.dma_copy(dst=out[nl.ds(i, 2), :], src=t)
return out
""",
    {"x": Arg("float32", X)},
    [("float32", X + 0.5)],
)
counting = """
count = tile((1, 1), nl.int32)
nisa.memset(dst=count, value={n})
r = nisa.register_alloc({n})
"""
case(
    "while_register",
    "while with a register goes on until it is zero; the body reloads it.",
    start + counting.format(n=5) + f"while r:\n    {adds}\n    nisa.tensor_scalar(dst=count, data=count, op0=nl.subtract, operand0=1.0)\n    nisa.register_load(dst=r, src=count)\nreturn give(t), give(count)",
    {},
    [("float32", [[5.0, 5.0]]), ("int32", [[0]])],
)
case(
    "while_loop",
    "while_loop: the body returns the next register.",
    start + counting.format(n=4) + f"def body(r):\n    {adds}\n    nisa.tensor_scalar(dst=count, data=count, op0=nl.subtract, operand0=1.0)\n    nisa.register_load(dst=r, src=count)\n    return r\n\nnl.while_loop(r, body)\nreturn give(t)",
    {},
    [("float32", [[4.0, 4.0]])],
)
case(
    "while_loop_none",
    "while_loop from zero never runs its body.",
    start + counting.format(n=0) + f"def body(r):\n    {adds}\n    return r\n\nnl.while_loop(r, body)\nreturn give(t)",
    {},
    [("float32", [[0.0, 0.0]])],
)
case(
    "registers",
    "register_alloc with a value, register_move, register_store.",
    """
a, b = nisa.register_alloc(41), nisa.register_alloc()
nisa.register_move(dst=b, src=a)
y, z = tile((1, 1), nl.int32), tile((1, 1), nl.int32)
nisa.register_store(dst=y, src=b)
nisa.register_move(dst=b, src=-7)
nisa.register_store(dst=z, src=b)
return give(y), give(z)
""",
    {},
    [("int32", [[41]]), ("int32", [[-7]])],
)
case(
    "grid_of_one",
    "A kernel that is started without a grid is program 0 of 1.",
    """
t = tile((1, 2), nl.int32)
nisa.memset(dst=t[:, 0:1], value=nl.program_id(0))
nisa.memset(dst=t[:, 1:2], value=nl.num_programs(0))
return give(t)
""",
    {},
    [("int32", [[0, 1]])],
)
case(
    "arguments",
    "Arguments that are not tensors: numbers, a bool, text, None, a tuple, a type, with defaults.",
    """
assert flag is True or flag == True
assert shape == (2, 3) and label == "plain" and nothing is None
t = tile(shape, dtype)
nisa.memset(dst=t, value=scale * count)
return give(t)
""",
    {"scale": "1.5", "count": "4", "flag": "True", "label": '"plain"', "nothing": "None", "shape": "(2,3)", "dtype": "nl.bfloat16"},
    [("bfloat16", np.full((2, 3), 6.0))],
)
case(
    "argument_object",
    "An argument may be an object of a dataclass of the file.",
    """
t = tile((config.rows, config.cols), nl.float32)
nisa.memset(dst=t, value=config.fill)
return give(t)
""",
    {"config": "Config(rows=2,cols=3)"},
    [("float32", np.full((2, 3), 2.5))],
    before="from dataclasses import dataclass\n\n\n@dataclass\nclass Config(nl.NKIObject):\n    rows: int\n    cols: int\n    fill: float = 2.5\n",
)
case(
    "object_with_methods",
    "A class that holds tiles and has methods: helpers with state, resolved when the kernel is compiled.",
    """
acc = Accumulator((6, 4))
for i in range(3):
    acc.add(fetch(x), by=i + 1)
return give(acc.total)
""",
    {"x": Arg("float32", X)},
    [("float32", 6 * X)],
    before="class Accumulator(nl.NKIObject):\n    def __init__(self, shape):\n        self.total = nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)\n        nisa.memset(dst=self.total, value=0.0)\n\n    def add(self, t, by=1):\n        nisa.scalar_tensor_tensor(dst=self.total, data=t, op0=nl.multiply, operand0=float(by), op1=nl.add, operand1=self.total)\n",
)
case(
    "list_and_dict_of_tiles",
    "Containers hold tiles; comprehensions make them.",
    """
parts = [fetch(x[r : r + 1, :]) for r in range(6) if r % 2 == 0]
by_name = {"first": parts[0], "rest": parts[1:]}
y = tile((1, 4), nl.float32)
nisa.tensor_copy(dst=y, src=by_name["first"])
for k, t in enumerate(by_name["rest"]):
    nisa.tensor_tensor(dst=y, data1=y, data2=t, op=nl.add if k == 0 else nl.subtract)
return give(y)
""",
    {"x": Arg("float32", X)},
    [("float32", X[0:1] + X[2:3] - X[4:5])],
)
case(
    "operator_as_value",
    "Operators are values: kept in a table, chosen when the kernel is compiled.",
    """
table = {"sum": nl.add, "top": nl.maximum}
r = []
for key in ("sum", "top"):
    y = tile((6, 1), nl.float32)
    nisa.tensor_reduce(dst=y, op=table[key], data=fetch(x), axis=1)
    r.append(give(y))
return tuple(r)
""",
    {"x": Arg("float32", X)},
    [("float32", X.sum(1, keepdims=True)), ("float32", X.max(1, keepdims=True))],
)
case(
    "nested_functions",
    "Functions in the kernel see its tiles; helpers return several values; defaults and star arguments work.",
    """
t = fetch(x)

def twice(times=2, *more):
    for _ in range(times + len(more)):
        nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.add)
    return t, times

a, n = twice(1, 0)
assert n == 1
return give(a)
""",
    {"x": Arg("float32", X)},
    [("float32", 4 * X)],
)
case(
    "names_and_order",
    "Instructions may have names, depend on each other explicitly, and be kept in order.",
    """
t = fetch(x)
with nl.no_reorder():
    first = nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0, name="first")
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0, name="second").depends_on(first)
return give(t)
""",
    {"x": Arg("float32", X)},
    [("float32", (X + 1) * 2)],
)
case(
    "tile_sizes",
    "The machine's limits by name, for trn2.",
    """
s = nl.tile_size
t = tile((1, 6), nl.int32)
for i, v in enumerate((s.pmax, s.psum_fmax, s.gemm_stationary_fmax, s.gemm_moving_fmax, s.psum_num_banks, s.bn_stats_fmax)):
    nisa.memset(dst=t[:, i : i + 1], value=v)
return give(t)
""",
    {},
    [("int32", [[128, 512, 128, 512, 8, 512]])],
)
case(
    "nc_version",
    "The generation is a value that code can compare.",
    """
v = nisa.get_nc_version()
t = tile((1, 1), nl.int32)
nisa.memset(dst=t, value=1 if v >= nisa.nc_version.gen3 and v != nisa.nc_version.gen4 else 0)
return give(t)
""",
    {},
    [("int32", [[1]])],
)
case(
    "sbuf_address",
    "Tiles at addresses of one's own: two of them deliberately share memory.",
    """
a = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf, address=(0, 1024))
b = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf, address=(0, 1040))
nisa.dma_copy(dst=a, src=x)
y = tile((4, 4), nl.float32)
nisa.tensor_copy(dst=y, src=b)
return give(y)
""",
    {"x": Arg("float32", ref.ramp(4, 8))},
    [("float32", ref.ramp(4, 8)[:, 4:])],
)
case(
    "random_seeded",
    "The same seed gives the same numbers; probability 0 and 1 of dropout are certain.",
    """
s = tile((1, 1), nl.uint32)
nisa.memset(dst=s, value=11)
r = []
for _ in range(2):
    nisa.set_rng_seed(src_seeds=s)
    t = tile((4, 8), nl.uint32)
    nisa.rng(dst=t, engine=nisa.engine.vector)
    r.append(t)
d = tile((4, 8), nl.uint32)
nisa.tensor_tensor(dst=d, data1=r[0], data2=r[1], op=nl.bitwise_xor)
ones, none, all_gone = [tile((4, 8), nl.float32) for _ in range(3)]
nisa.memset(dst=ones, value=3.0)
nisa.dropout(dst=none, data=ones, prob=0.0)
nisa.dropout(dst=all_gone, data=ones, prob=1.0)
return give(d), give(none), give(all_gone)
""",
    {},
    [("uint32", np.zeros((4, 8))), ("float32", np.full((4, 8), 3.0)), ("float32", np.zeros((4, 8)))],
)
