"""Gathers inside SBUF, the eight-at-a-time search instructions, segments."""
import numpy as np

import ref
from make import Arg, Out, case

rng = np.random.RandomState(51)
D = ref.pick(52, 3, 12)
I = rng.randint(0, 12, (3, 7))
case(
    "n_gather",
    "nc_n_gather: each lane picks from its own row.",
    """
y = tile((3, 7), nl.float32)
nisa.nc_n_gather(dst=y, data=fetch(x), indices=fetch(i))
return give(y)
""",
    {"x": Arg("float32", D), "i": Arg("uint32", I)},
    [("float32", np.take_along_axis(D, I, 1))],
)
case(
    "n_gather_flat",
    "nc_n_gather counts over the flattened free dimensions.",
    """
y = tile((3, 7), nl.float32)
nisa.nc_n_gather(dst=y, data=fetch(x), indices=fetch(i))
return give(y)
""",
    {"x": Arg("float32", D.reshape(3, 3, 4)), "i": Arg("uint32", I)},
    [("float32", np.take_along_axis(D, I, 1))],
)
L = ref.pick(53, 32, 20)
LI = rng.randint(0, 20, (32, 2))
want = np.zeros((32, 32))
for core in range(2):
    ids = LI[16 * core : 16 * core + 16].T.reshape(-1)  # the partition runs fastest
    want[16 * core : 16 * core + 16] = L[16 * core : 16 * core + 16][:, ids]
case(
    "local_gather",
    "local_gather: each group of 16 lanes shares the 16 rows of indices that lie on it.",
    """
y = tile((32, 32), nl.float32)
nisa.local_gather(dst=y, src_buffer=fetch(x), index=fetch(i))
return give(y)
""",
    {"x": Arg("float32", L), "i": Arg("uint16", LI)},
    [("float32", want)],
)
BI = rng.randint(0, 5, (16, 1)) * 4
bwant = np.concatenate([L[:16, s : s + 4] for s in BI[:, 0][:10]], 1)
case(
    "local_gather_blocks",
    "local_gather of blocks of 4 elements; only the first indices are valid.",
    """
y = tile((16, 40), nl.float32)
nisa.local_gather(dst=y, src_buffer=fetch(x)[0:16, :], index=fetch(i), num_elem_per_idx=4, num_valid_indices=10)
return give(y)
""",
    {"x": Arg("float32", L), "i": Arg("uint16", BI)},
    [("float32", bwant)],
)
P = rng.permutation(40).reshape(2, 20) * 0.5 - 7
top = -np.sort(-P, 1)[:, :8]
case("max8", "max8: the eight largest, falling.", "y = tile((2, 8), nl.float32)\nnisa.max8(dst=y, src=fetch(x))\nreturn give(y)", {"x": Arg("float32", P)}, [("float32", top)])
TIES = np.array([[3.0, 1, 3, 3, 0, 2, 2, 9, 3, 1], [5.0] * 10])
case("max8_ties", "max8 keeps duplicates.", "y = tile((2, 8), nl.float32)\nnisa.max8(dst=y, src=fetch(x))\nreturn give(y)", {"x": Arg("float32", TIES)}, [("float32", -np.sort(-TIES, 1)[:, :8])])
case(
    "find_index8",
    "nc_find_index8 finds where the eight values are.",
    """
x_t = fetch(x)
m, y = tile((2, 8), nl.float32), tile((2, 8), nl.uint32)
nisa.max8(dst=m, src=x_t)
nisa.nc_find_index8(dst=y, data=x_t, vals=m)
return give(y)
""",
    {"x": Arg("float32", P)},
    [("uint32", np.argsort(-P, 1)[:, :8])],
)
DOC = np.array([[1.0, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8]])
VALS = np.array([[3.0, 8, 8, 8, 8, 8, 8, 8]])
case(
    "find_index8_duplicates",
    "Equal values take successive places, from the left; a value that is not there gives all ones.",
    """
y, z = tile((1, 8), nl.uint32), tile((1, 8), nl.uint16)
nisa.nc_find_index8(dst=y, data=fetch(x), vals=fetch(v))
nisa.nc_find_index8(dst=z, data=fetch(x), vals=fetch(w))
return give(y), give(z)
""",
    {"x": Arg("float32", DOC), "v": Arg("float32", VALS), "w": Arg("float32", VALS + 4)},
    [("uint32", [[2, 4, 5, 6, 7, 8, 9, 10]]), ("uint16", [[65535] * 8])],
)
case(
    "match_replace8",
    "nc_match_replace8 replaces from the last value to the first, each at the leftmost place left.",
    """
y, i = tile(x.shape, nl.float32), tile((1, 8), nl.uint32)
nisa.nc_match_replace8(dst=y, data=fetch(x), vals=fetch(v), imm=-1.0, dst_idx=i)
return give(y), give(i)
""",
    {"x": Arg("float32", DOC), "v": Arg("float32", VALS)},
    [("float32", [[1, 2, -1, 4, -1, -1, -1, -1, -1, -1, -1]]), ("uint32", [[2, 10, 9, 8, 7, 6, 5, 4]])],
)
case(
    "match_replace8_in_place",
    "In place, as a top-k loop uses it.",
    """
x_t = fetch(x)
m, n = tile((2, 8), nl.float32), tile((2, 8), nl.float32)
nisa.max8(dst=m, src=x_t)
nisa.nc_match_replace8(dst=x_t, data=x_t, vals=m, imm=-100.0)
nisa.max8(dst=n, src=x_t)
return give(n)
""",
    {"x": Arg("float32", P)},
    [("float32", -np.sort(-P, 1)[:, 8:16])],
)
case(
    "nonzero_with_count",
    "nonzero_with_count: the places that are not zero, padding, and their number, on lane 0 of a group of 16.",
    """
y = tile((16, 9), nl.int32)
nisa.memset(dst=y, value=0)
nisa.nonzero_with_count(dst=y, src=fetch(x), index_offset=16, padding_val=-1)
return give(y[0:1, :])
""",
    {"x": Arg("float32", np.concatenate([[[0.0, 1, 1, 0, 0, 1, 0, 0]], np.ones((15, 8))]))},
    [("int32", [[17, 18, 21, -1, -1, -1, -1, -1, 3]])],
)
SEG = np.array([[0, 1, 1, 2, 2, 2, 0, 3, 3]])
case(
    "sequence_bounds",
    "sequence_bounds: where each run of equal ids starts and ends; 0 is no id.",
    """
y = tile((1, 2, 9), nl.int32)
nisa.sequence_bounds(dst=y, segment_ids=fetch(s))
return give(y)
""",
    {"s": Arg("int32", SEG)},
    [("int32", [[[9, 1, 1, 3, 3, 3, 9, 7, 7], [-1, 3, 3, 6, 6, 6, -1, 9, 9]]])],
)
N = 20
values = np.random.RandomState(54).permutation(32)[:N] * 1.0
snake = np.zeros((16, 2))
for e in range(N):
    snake[e % 16, e // 16] = values[e]
order = np.argsort(values)[-5:]
case(
    "topk",
    "topk: elements lie as a snake over 16 lanes; the largest come in rising order with their snake places.",
    """
v, i = tile((16, 5), nl.bfloat16), tile((16, 5), nl.uint32)
nisa.topk(v, i, fetch(x), 20)
return give(v[0:1, :]), give(i[0:1, :])
""",
    {"x": Arg("bfloat16", snake)},
    [("bfloat16", values[order][None, :]), ("uint32", order[None, :])],
)
