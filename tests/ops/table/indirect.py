"""Indirect views on trn3: each group of 16 partitions (32 on the Tensor engine) holds the offsets of its own columns, offset i in
row i mod group, column i div group of the group's rows of the index."""
import numpy as np

import ref
from make import Arg, case

P, F, N = 32, 40, 24
rng = np.random.default_rng(7)
X = ref.ramp(P, F)


def index(n, group, parts=P, wide=F, seed=3):
    """An index tile with different offsets in each group, no offset twice."""
    cols = -(-n // group)
    idx = np.zeros((parts, cols), np.int64)
    offs = []
    r = np.random.default_rng(seed)
    for g in range(parts // group):
        o = r.permutation(wide)[:n]
        offs.append(o)
        for i in range(n):
            idx[g * group + i % group, i // group] = o[i]
    return idx, offs


def gather(x, offs, group):
    return np.stack([x[p, offs[p // group]] for p in range(len(x))])


def scatter(into, x, offs, group):
    y = into.copy()
    for p in range(len(x)):
        y[p, offs[p // group]] = x[p]
    return y


I16, O16 = index(N, 16)
G = gather(X, O16, 16)
ARGS = {"x": Arg("float32", X), "index": Arg("uint16", I16)}


def gathers(name, what, body, want, tol=None, args=ARGS, dtype="float32"):
    case(
        f"indirect_{name}",
        what,
        f"""
t = fetch(x)
v = t.indirect(fetch(index), num_elem={N})
assert v.shape == ({P}, {N}) and v.is_indirect()
{body}
return give(y)
""",
        args,
        [(dtype, want, *tol)] if tol else [(dtype, want)],
        target="trn3",
    )


gathers("copy", "tensor_copy gathers columns.", f"y = tile(({P}, {N}), nl.float32)\nnisa.tensor_copy(dst=y, src=v)", G)
gathers("copy_scalar", "The Scalar engine gathers too.", f"y = tile(({P}, {N}), nl.float32)\nnisa.tensor_copy(dst=y, src=v, engine=nisa.engine.scalar)", G)
gathers("tensor_tensor", "data1 may be indirect.", f"y = tile(({P}, {N}), nl.float32)\nnisa.tensor_tensor(dst=y, data1=v, data2=t[:, 0:{N}], op=nl.subtract)", G - X[:, :N])
gathers("tensor_scalar", "data may be indirect.", f"y = tile(({P}, {N}), nl.float32)\nnisa.tensor_scalar(dst=y, data=v, op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=1.0)", 2 * G + 1)
gathers("tensor_reduce", "data may be indirect.", f"y = tile(({P}, 1), nl.float32)\nnisa.tensor_reduce(dst=y, op=nl.maximum, data=v, axis=1)", G.max(1, keepdims=True))
gathers("activation", "data may be indirect.", f"y = tile(({P}, {N}), nl.float32)\nnisa.activation(dst=y, op=nl.square, data=v)", (G.astype(np.float32) ** 2).astype(np.float64))
gathers("cumulative", "src may be indirect.", f"y = tile(({P}, {N}), nl.float32)\nnisa.tensor_scalar_cumulative(dst=y, src=v, op0=nl.multiply, op1=nl.add, imm0=1.0)", np.cumsum(G, 1))
gathers(
    "scalar_reduce",
    "data may be indirect; the fold sees what is gathered.",
    f"y = tile(({P}, 1), nl.float32)\nnisa.tensor_scalar_reduce(dst=tile(({P}, {N}), nl.float32), data=v, op0=nl.add, operand0=0.0, reduce_op=nl.add, reduce_res=y)",
    G.sum(1, keepdims=True),
)

S = ref.ramp(P, N) + 1000
case(
    "indirect_scatter",
    "A scatter writes the named columns and leaves the others.",
    f"""
y = fetch(x)
nisa.tensor_copy(dst=y.indirect(fetch(index), num_elem={N}), src=fetch(s))
return give(y)
""",
    {**ARGS, "s": Arg("float32", S)},
    [("float32", scatter(X, S, O16, 16))],
    target="trn3",
)
J16, Q16 = index(N, 16, seed=11)
case(
    "indirect_both",
    "Gather and scatter in one instruction.",
    f"""
y = fetch(x)
nisa.tensor_copy(dst=y.indirect(fetch(to), num_elem={N}), src=fetch(x).indirect(fetch(index), num_elem={N}))
return give(y)
""",
    {**ARGS, "to": Arg("uint16", J16)},
    [("float32", scatter(X, G, Q16, 16))],
    target="trn3",
)
M = (rng.random((P, N)) < 0.5).astype(np.int64)
case(
    "indirect_predicated",
    "tensor_copy_predicated: dst may be indirect.",
    f"""
y = fetch(x)
nisa.tensor_copy_predicated(dst=y.indirect(fetch(index), num_elem={N}), src=fetch(s), predicate=fetch(m))
return give(y)
""",
    {**ARGS, "s": Arg("float32", S), "m": Arg("uint8", M)},
    [("float32", scatter(X, np.where(M, S, G), O16, 16))],
    target="trn3",
)

# On the Tensor engine groups have 32 partitions.
K, W, C = 64, 40, 16
A, B = rng.integers(-4, 5, (K, W)).astype(float), rng.integers(-4, 5, (K, W)).astype(float)
IA, OA = index(C, 32, K, W, seed=5)
IB, OB = index(C, 32, K, W, seed=6)
case(
    "indirect_matmul",
    "nc_matmul: stationary and moving may be indirect, each group of 32 partitions by its own offsets.",
    f"""
p = bank(({C}, {C}))
nisa.nc_matmul(dst=p, stationary=fetch(a).indirect(fetch(ia), num_elem={C}), moving=fetch(b).indirect(fetch(ib), num_elem={C}))
y = tile(({C}, {C}), nl.float32)
nisa.tensor_copy(dst=y, src=p)
return give(y)
""",
    {"a": Arg("bfloat16", A), "b": Arg("bfloat16", B), "ia": Arg("uint16", IA), "ib": Arg("uint16", IB)},
    [("float32", gather(A, OA, 32).T @ gather(B, OB, 32))],
    target="trn3",
)
