"""DMA: layouts, addresses from data, transposes, sums."""
import numpy as np

import ref
from make import Arg, Out, case

X = ref.ramp(6, 8)
case(
    "dma_row_major_order",
    "Elements are paired in row-major order of the two patterns, whatever their shapes.",
    """
y = tile((4, 12), nl.float32)
nisa.dma_copy(dst=y, src=x.reshape((4, 12)))
z = tile((3, 2, 8), nl.float32)
nisa.dma_copy(dst=z, src=x.reshape((3, 2, 8)))
return give(y), give(z)
""",
    {"x": Arg("float32", X)},
    [("float32", X.reshape(4, 12)), ("float32", X.reshape(3, 2, 8))],
)
case(
    "dma_strided",
    "Strided on both sides: every second row and column in, into every third column.",
    """
y = tile((3, 12), nl.float32)
nisa.memset(dst=y, value=-1.0)
nisa.dma_copy(dst=y[:, 0:12:3], src=x[0:6:2, 1:8:2])
return give(y)
""",
    {"x": Arg("float32", X)},
    [("float32", [[X[2 * r, 1 + 2 * (c // 3)] if c % 3 == 0 else -1 for c in range(12)] for r in range(3)])],
)
case(
    "dma_hbm_to_hbm",
    "A DMA needs no SBUF: HBM to HBM, and SBUF to SBUF across lanes.",
    """
out = nl.ndarray((8, 6), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=x.permute((1, 0)))
a = fetch(x)
b = tile((6, 8), nl.float32)
for r in range(6):
    nisa.dma_copy(dst=b[5 - r : 6 - r, :], src=a[r : r + 1, :])
return out, give(b)
""",
    {"x": Arg("float32", X)},
    [("float32", X.T), ("float32", X[::-1])],
)
case(
    "dma_private_hbm",
    "Scratch in HBM: written, then read back in another shape.",
    """
s = nl.ndarray((48,), dtype=nl.float32, buffer=nl.private_hbm)
nisa.dma_copy(dst=s.reshape((6, 8)), src=fetch(x))
y = tile((8, 6), nl.float32)
nisa.dma_copy(dst=y, src=s.ap(pattern=[[1, 8], [8, 6]]))
return give(y)
""",
    {"x": Arg("float32", X)},
    [("float32", X.T)],
)
case(
    "dma_broadcast_stride",
    "A stride of zero in HBM reads a row for every lane.",
    """
y = tile((5, 8), nl.float32)
nisa.dma_copy(dst=y, src=x.ap(pattern=[[0, 5], [1, 8]], offset=16))
return give(y)
""",
    {"x": Arg("float32", X)},
    [("float32", np.tile(X[2], (5, 1)))],
)
case(
    "dma_in_place_argument",
    "A kernel may write into its own argument: the tool then writes that tensor too.",
    """
t = fetch(x)
nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=100.0)
nisa.dma_copy(dst=x[2:4, :], src=t[2:4, :])
return give(t)
""",
    {"x": Arg("float32", X)},
    [("float32", X + 100), Out("float32", np.where((np.arange(6)[:, None] // 2) == 1, X + 100, X), name="x")],
)
for mode in ("none", "swdge", "hwdge"):
    case(
        f"dma_mode_{mode}",
        f"dge_mode {mode} changes who makes the descriptors, not what arrives.",
        f"""
y = tile(x.shape, nl.float32)
nisa.dma_copy(dst=y, src=x, dge_mode=nisa.dge_mode.{mode})
return give(y)
""",
        {"x": Arg("float32", X)},
        [("float32", X)],
    )
T = ref.ramp(9, 4)
IDX = np.array([[3], [0], [8], [3], [5]])
rows_of = """
def rows_of(matrix, index):
    n, width = index.shape[0], matrix.shape[1]
    return matrix.ap(pattern=[[width, n], [1, width]], vector_offset=index, indirect_dim=0)
"""
for dtype in ("int32", "uint32"):
    case(
        f"gather_rows_{dtype}",
        "vector_offset on the source: each lane reads the row that its index names.",
        """
y = tile((5, 4), nl.float32)
nisa.dma_copy(dst=y, src=rows_of(t, fetch(i)))
return give(y)
""",
        {"t": Arg("float32", T), "i": Arg(dtype, IDX)},
        [("float32", T[IDX[:, 0]])],
        before=rows_of,
    )
case(
    "gather_part_of_rows",
    "A gather of columns 1 and 2 of the rows: the offset moves inside a row.",
    """
y = tile((5, 2), nl.float32)
nisa.dma_copy(dst=y, src=t.ap(pattern=[[4, 5], [1, 2]], offset=1, vector_offset=fetch(i), indirect_dim=0))
return give(y)
""",
    {"t": Arg("float32", T), "i": Arg("int32", IDX)},
    [("float32", T[IDX[:, 0], 1:3])],
)
case(
    "vector_select",
    "vector_select is the same gather by name.",
    """
y = tile((5, 4), nl.float32)
nisa.dma_copy(dst=y, src=t.vector_select(0, fetch(i)))
return give(y)
""",
    {"t": Arg("float32", T), "i": Arg("int32", IDX)},
    [("float32", T[IDX[:, 0]])],
)
TO = np.array([[7], [1], [4], [0]])
sc = np.full((9, 4), -1.0)
sc[TO[:, 0]] = T[:4]
case(
    "scatter_rows",
    "vector_offset on the destination: each lane writes the row that its index names.",
    """
out = nl.ndarray((9, 4), dtype=nl.float32, buffer=nl.shared_hbm)
fill = tile((9, 4), nl.float32)
nisa.memset(dst=fill, value=-1.0)
nisa.dma_copy(dst=out, src=fill)
nisa.dma_copy(dst=rows_of(out, fetch(i)), src=fetch(t)[0:4, :])
return out
""",
    {"t": Arg("float32", T), "i": Arg("int32", TO)},
    [("float32", sc)],
    before=rows_of,
)
OOB = np.array([[3], [100], [0], [9], [8]])
case(
    "gather_skip",
    "oob_mode.skip: a lane whose row does not exist keeps what it had.",
    """
y = tile((5, 4), nl.float32)
nisa.memset(dst=y, value=-1.0)
nisa.dma_copy(dst=y, src=rows_of(t, fetch(i)), oob_mode=nisa.oob_mode.skip)
return give(y)
""",
    {"t": Arg("float32", T), "i": Arg("int32", OOB)},
    [("float32", [T[k] if k < 9 else [-1.0] * 4 for k in OOB[:, 0]])],
    before=rows_of,
)
sk = np.full((9, 4), -1.0)
for lane, k in enumerate((2, 9, 5, 1000)):
    if k < 9:
        sk[k] = T[lane]
case(
    "scatter_skip",
    "oob_mode.skip on a scatter: rows past the end are dropped.",
    """
out = nl.ndarray((9, 4), dtype=nl.float32, buffer=nl.shared_hbm)
fill = tile((9, 4), nl.float32)
nisa.memset(dst=fill, value=-1.0)
nisa.dma_copy(dst=out, src=fill)
nisa.dma_copy(dst=rows_of(out, fetch(i)), src=fetch(t)[0:4, :], oob_mode=nisa.oob_mode.skip)
return out
""",
    {"t": Arg("float32", T), "i": Arg("int32", [[2], [9], [5], [1000]])},
    [("float32", sk)],
    before=rows_of,
)
B = ref.ramp(4, 3, 5)
case(
    "scalar_offset_tensor",
    "scalar_offset from an SBUF element: block b of a [blocks, rows, cols] tensor.",
    """
y = tile((3, 5), nl.float32)
nisa.dma_copy(dst=y, src=x.ap(pattern=[[5, 3], [1, 5]], scalar_offset=fetch(b), indirect_dim=0))
return give(y)
""",
    {"x": Arg("float32", B), "b": Arg("int32", [[2]])},
    [("float32", B[2])],
)
case(
    "scalar_offset_register",
    "scalar_offset from a register, counted in rows, on source and destination.",
    """
out = nl.ndarray((4, 3, 5), dtype=nl.float32, buffer=nl.shared_hbm)
r = nisa.register_alloc()
nisa.register_load(dst=r, src=b)
t = tile((3, 5), nl.float32)
for i in range(4):
    nisa.dma_copy(dst=out[i], src=x[i])
nisa.dma_copy(dst=t, src=x.ap(pattern=[[5, 3], [1, 5]], scalar_offset=r, indirect_dim=0))
nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=-1.0)
nisa.dma_copy(dst=out.ap(pattern=[[5, 3], [1, 5]], scalar_offset=r, indirect_dim=0), src=t)
return out
""",
    {"x": Arg("float32", B), "b": Arg("int32", [[3]])},
    [("float32", np.where(np.arange(4)[:, None, None] == 3, -B, B))],
)
case(
    "scalar_offset_inner_dim",
    "scalar_offset on an inner dimension counts that dimension's elements.",
    """
y = tile((4, 5), nl.float32)
nisa.dma_copy(dst=y, src=x.ap(pattern=[[15, 4], [1, 5]], scalar_offset=fetch(b), indirect_dim=1))
return give(y)
""",
    {"x": Arg("float32", B), "b": Arg("int32", [[1]])},
    [("float32", B[:, 1, :])],
)
case(
    "select_dynamic",
    "select with an SBUF element picks one index of a dimension at run time.",
    """
y = tile((3, 5), nl.float32)
nisa.dma_copy(dst=y, src=x.select(0, fetch(b)))
return give(y)
""",
    {"x": Arg("float32", B), "b": Arg("int32", [[1]])},
    [("float32", B[1])],
)
case(
    "scalar_offset_on_chip",
    "A compute instruction may read SBUF at an address from data.",
    """
x_t = fetch(x)
y = tile((6, 2), nl.float32)
nisa.tensor_copy(dst=y, src=x_t.ap(pattern=[[8, 6], [1, 2]], scalar_offset=fetch(b), indirect_dim=1))
return give(y)
""",
    {"x": Arg("float32", X), "b": Arg("int32", [[5]])},
    [("float32", X[:, 5:7])],
)
H = ref.ramp(16, 12)
case(
    "dma_transpose_2d",
    "dma_transpose of a 2-byte matrix.",
    """
y = tile((12, 16), nl.bfloat16)
nisa.dma_transpose(dst=y, src=x)
return give(y)
""",
    {"x": Arg("bfloat16", H)},
    [("bfloat16", H.T)],
)
case(
    "dma_transpose_axes",
    "dma_transpose of 3 and 4 dimensions by axes.",
    """
a, b = tile((4, 3, 2), nl.float32), tile((5, 3, 4, 2), nl.float32)
nisa.dma_transpose(dst=a, src=x, axes=(2, 1, 0))
nisa.dma_transpose(dst=b, src=z, axes=(3, 1, 2, 0))
return give(a), give(b)
""",
    {"x": Arg("float32", ref.ramp(2, 3, 4)), "z": Arg("float32", ref.ramp(2, 3, 4, 5))},
    [("float32", ref.ramp(2, 3, 4).transpose(2, 1, 0)), ("float32", ref.ramp(2, 3, 4, 5).transpose(3, 1, 2, 0))],
)
case(
    "dma_transpose_sbuf",
    "The source of a DMA transpose may be in SBUF; int32 keeps its bits.",
    """
y = tile((3, 2), nl.int32)
nisa.dma_transpose(dst=y, src=fetch(x))
return give(y)
""",
    {"x": Arg("int32", [[1, 2, 16777217], [-4, -5, 2**31 - 1]])},
    [("int32", [[1, -4], [2, -5], [16777217, 2**31 - 1]])],
)
A3 = [ref.pick(s, 4, 6) for s in (61, 62, 63)]
case(
    "dma_compute_add",
    "dma_compute sums several sources, in fp32, and converts to the destination.",
    """
y, z = tile((4, 6), nl.float32), tile((4, 6), nl.bfloat16)
nisa.dma_compute(dst=y, srcs=[a, b, c], reduce_op=nl.add)
nisa.dma_compute(dst=z, srcs=[fetch(a), b], scales=[1.0, 1.0], reduce_op=nl.add)
return give(y), give(z)
""",
    {n: Arg("float32", v) for n, v in zip("abc", A3)},
    [("float32", A3[0] + A3[1] + A3[2]), ("bfloat16", ref.round_float(A3[0] + A3[1], "bfloat16"))],
)
case(
    "dma_compute_scatter_add",
    "dma_compute with vector_offset adds SBUF rows into HBM rows in place.",
    """
out = nl.ndarray((9, 4), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=t)
here = rows_of(out, fetch(i))
nisa.dma_compute(dst=here, srcs=[here, fetch(u)], reduce_op=nl.add)
return out
""",
    {"t": Arg("float32", T), "u": Arg("float32", ref.ramp(4, 4, start=100)), "i": Arg("int32", TO)},
    [("float32", T + np.array([[0.0] * 4 if r not in TO[:, 0] else list(ref.ramp(4, 4, start=100)[list(TO[:, 0]).index(r)]) for r in range(9)]))],
    before=rows_of,
)
