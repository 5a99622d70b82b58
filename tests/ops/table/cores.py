"""Launches of two programs, collectives of one rank, states of random generators."""
import numpy as np

import ref
from make import Arg, Out, case

X = ref.ramp(4, 6)
PAIR = ref.ramp(2, 3, 5)
case(
    "cores_sendrecv_swap",
    "sendrecv exchanges tiles of the two cores; the second exchange is in place and brings them back.",
    """
r = nl.program_id(0)
t, u = tile((3, 5), nl.float32), tile((3, 5), nl.float32)
nisa.dma_copy(dst=t, src=x[r, :, :])
nisa.sendrecv(src=t, dst=u, send_to_rank=1 - r, recv_from_rank=1 - r, pipe_id=3)
once = nl.ndarray((2, 3, 5), nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=once[r, :, :], src=u)
nisa.sendrecv(src=u, dst=u, send_to_rank=1 - r, recv_from_rank=1 - r, pipe_id=3)
twice = nl.ndarray((2, 3, 5), nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=twice[r, :, :], src=u)
return once, twice
""",
    {"x": Arg("float32", PAIR)},
    [("float32", PAIR[::-1]), ("float32", PAIR)],
    grid=2,
)
case(
    "cores_sendrecv_strided_loop",
    "sendrecv of strided views, the ranks in registers, three times in a loop on the device: an odd number of swaps.",
    """
r = nl.program_id(0)
t = tile((3, 10), nl.int16)
nisa.memset(t, 7)
nisa.dma_copy(dst=t[:, 0:10:2], src=x[r, :, :])
peer = nisa.register_alloc(1 - r)
for i in nl.dynamic_range(3):
    nisa.sendrecv(src=t[:, 0:10:2], dst=t[:, 0:10:2], send_to_rank=peer, recv_from_rank=peer, pipe_id=0)
out = nl.ndarray((2, 3, 10), nl.int16, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out[r, :, :], src=t)
return out
""",
    {"x": Arg("int16", PAIR)},
    [("int16", np.where(np.arange(10) % 2 == 0, np.repeat(PAIR[::-1], 2, axis=2), 7))],
    grid=2,
)
case(
    "cores_sendrecv_own_rank",
    "Each core may send to itself: a copy.",
    """
r = nl.program_id(0)
t, u = tile((3, 5), nl.bfloat16), tile((3, 5), nl.bfloat16)
nisa.dma_copy(dst=t, src=x[r, :, :])
nisa.sendrecv(src=t, dst=u, send_to_rank=r, recv_from_rank=r, pipe_id=0, dma_engine=nisa.dma_engine.gpsimd_dma)
out = nl.ndarray((2, 3, 5), nl.bfloat16, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out[r, :, :], src=u)
return out
""",
    {"x": Arg("bfloat16", PAIR)},
    [("bfloat16", PAIR)],
    grid=2,
)
case(
    "cores_shared_by_name",
    "Shared tensors are one memory when their names are equal, whatever else a program allocates; private HBM is each core's own.",
    """
r = nl.program_id(0)
if r == 1:
    extra = nl.ndarray((4, 6), nl.float32, buffer=nl.shared_hbm, name="extra")
    nisa.dma_copy(dst=extra, src=x)
both = nl.ndarray((4, 6), nl.float32, buffer=nl.shared_hbm, name="both")
mine = nl.ndarray((2, 6), nl.float32, buffer=nl.private_hbm, name="mine")
nisa.dma_copy(dst=mine, src=x[2 * r : 2 * r + 2, :])
nisa.dma_copy(dst=both[2 * r : 2 * r + 2, :], src=mine)
nisa.core_barrier(data=both, cores=(0, 1))
t = tile((2, 6), nl.float32)
nisa.dma_copy(dst=t, src=both[2 - 2 * r : 4 - 2 * r, :])
out = nl.ndarray((4, 6), nl.float32, buffer=nl.shared_hbm, name="out")
nisa.dma_copy(dst=out[2 * r : 2 * r + 2, :], src=t)
own = nl.ndarray((4, 6), nl.float32, buffer=nl.shared_hbm, name="own")
nisa.dma_copy(dst=own[2 * r : 2 * r + 2, :], src=mine)
return out, own
""",
    {"x": Arg("float32", X)},
    [("float32", np.roll(X, 2, axis=0)), ("float32", X)],
    grid=2,
)
case(
    "cores_argument_in_place",
    "Both cores see an argument that they write, and what neither writes of an output is not a number.",
    """
r = nl.program_id(0)
t = tile((2, 6), nl.float32)
nisa.dma_copy(dst=t, src=x[2 * r : 2 * r + 2, :])
nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=10.0)
nisa.dma_copy(dst=x[2 * r : 2 * r + 2, :], src=t)
nisa.core_barrier(x, (0, 1))
nisa.dma_copy(dst=t, src=x[2 - 2 * r : 4 - 2 * r, :])
out = nl.ndarray((5, 6), nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out[2 * r : 2 * r + 2, :], src=t)
return out
""",
    {"x": Arg("float32", X)},
    [("float32", np.concatenate([10 * np.roll(X, 2, axis=0), np.full((1, 6), np.nan)])), Out("float32", 10 * X, name="x")],
    types={"x": "nt.mutable_tensor"},
    grid=2,
)
case(
    "cores_one_of_two_ready",
    "Core 1 goes on where core 0 has filled the memory, and the other way around: a chain of four barriers.",
    """
r = nl.program_id(0)
s = nl.ndarray((1, 1), nl.float32, buffer=nl.shared_hbm)
t = tile((1, 1), nl.float32)
nisa.memset(t, 1.0)
if r == 0:
    nisa.dma_copy(dst=s, src=t)
for step in range(4):
    nisa.core_barrier(s, (0, 1))
    if step % 2 != r:
        nisa.dma_copy(dst=t, src=s)
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=3.0, op1=nl.add, operand1=float(r))
        nisa.dma_copy(dst=s, src=t)
return s
""",
    {"x": Arg("float32", X)},
    [("float32", [[((1 * 3 + 1) * 3 * 3 + 1) * 3]])],
    grid=2,
)
case(
    "cores_random_differ",
    "The generators of the two cores start apart; one seed gives both one sequence.",
    """
r = nl.program_id(0)
a, b = tile((4, 8), nl.uint32), tile((4, 8), nl.uint32)
nisa.rng(dst=a)
nisa.sendrecv(src=a, dst=b, send_to_rank=1 - r, recv_from_rank=1 - r, pipe_id=0)
d = tile((4, 8), nl.uint32)
nisa.tensor_tensor(dst=d, data1=a, data2=b, op=nl.bitwise_xor)
nisa.tensor_scalar(dst=d, data=d, op0=nl.not_equal, operand0=0)
nisa.set_rng_seed(fetch(x))
nisa.rng(dst=a)
nisa.sendrecv(src=a, dst=b, send_to_rank=1 - r, recv_from_rank=1 - r, pipe_id=0)
e = tile((4, 8), nl.uint32)
nisa.tensor_tensor(dst=e, data1=a, data2=b, op=nl.bitwise_xor)
y, z = (nl.ndarray((2, 4, 8), nl.uint32, buffer=nl.shared_hbm, name=n) for n in ("y", "z"))
nisa.dma_copy(dst=y[r, :, :], src=d)
nisa.dma_copy(dst=z[r, :, :], src=e)
return y, z
""",
    {"x": Arg("uint32", [[42]])},
    [("uint32", np.ones((2, 4, 8))), ("uint32", np.zeros((2, 4, 8)))],
    grid=2,
)


# ---- random states


def xorwow(state, n):
    """n words of Marsaglia's generator (Xorwow, Journal of Statistical Software 8(14)), and the state after them."""
    x, y, z, w, v, d = (int(s) for s in state)
    words = []
    for _ in range(n):
        t = x ^ (x >> 2)
        x, y, z, w = y, z, w, v
        v = (v ^ (v << 4) ^ t ^ (t << 1)) & 0xFFFFFFFF
        d = (d + 362437) & 0xFFFFFFFF
        words.append((v + d) & 0xFFFFFFFF)
    return words, [x, y, z, w, v, d]


G = 123456789 + 77 * np.arange(18).reshape(3, 6)
case(
    "random_state_gpsimd",
    "GpSimd's generator goes on from the state that is written: x y z w v d of XORWOW; the state read afterwards is the next.",
    """
s, y, r = fetch(x), tile((3, 5), nl.uint32), tile((3, 6), nl.uint32)
nisa.rand_set_state(src_seeds=s, engine=nisa.engine.gpsimd)
nisa.rng(dst=y, engine=nisa.engine.gpsimd)
nisa.rand_get_state(dst=r, engine=nisa.engine.gpsimd)
return give(y), give(r)
""",
    {"x": Arg("uint32", G)},
    [("uint32", [xorwow(g, 5)[0] for g in G]), ("uint32", [xorwow(g, 5)[1] for g in G])],
)


def four(states, n):
    """Element i is of state i mod 4."""
    words = [xorwow(s, (n + 3 - k) // 4)[0] for k, s in enumerate(states)]
    return [words[i % 4][i // 4] for i in range(n)]


V = 362436069 + 1000003 * np.arange(48).reshape(2, 24)
case(
    "random_state_vector",
    "trn3's Vector engine has four states a lane, element i of an instruction drawn from state i mod 4; a lane is a partition.",
    """
s, y, z, r = fetch(x), tile((2, 6), nl.uint32), tile((2, 6), nl.uint32), tile((2, 24), nl.uint32)
nisa.rand_set_state(src_seeds=s, engine=nisa.engine.vector)
nisa.rng(dst=y, engine=nisa.engine.vector)
nisa.rand_get_state(dst=r, engine=nisa.engine.vector)
nisa.rng(dst=y, engine=nisa.engine.vector)
nisa.rand_set_state(src_seeds=r, engine=nisa.engine.vector)
nisa.rng(dst=z, engine=nisa.engine.vector)
nisa.tensor_tensor(dst=z, data1=z, data2=y, op=nl.bitwise_xor)
nisa.rand_set_state(src_seeds=s, engine=nisa.engine.vector)
nisa.rng(dst=y, engine=nisa.engine.vector)
return give(y), give(z)
""",
    {"x": Arg("uint32", V)},
    [("uint32", [four(v.reshape(4, 6), 6) for v in V]), ("uint32", np.zeros((2, 6)))],
    target="trn3",
)


# ---- collectives

case(
    "collectives_one_rank",
    "With one rank the collectives are copies; all tensors of a call are moved.",
    """
g = ncc.ReplicaGroup([[0]])
out = [nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm, name=f"o{i}") for i in range(6)]
ncc.all_reduce([x], [out[0]], g, nl.add)
ncc.all_gather(srcs=[x, y], dsts=[out[1], out[2]], replica_group=g, collective_dim=0)
ncc.reduce_scatter([y], [out[3]], g, 0, op=nl.maximum)
ncc.all_to_all([x], [out[4]], g, 0)
ncc.collective_permute([y], [out[5]], [(0, 0)])
s, t = fetch(x), tile(x.shape, x.dtype)
ncc.all_gather([s], [t], g, 1, name="in_sbuf")
assert ncc.rank_id() == 0 and ncc.collective_permute_implicit_current_processing_rank_id(0, g) == 0
return tuple(out) + (give(t),)
""",
    {"x": Arg("float32", X), "y": Arg("float32", -X)},
    [("float32", v) for v in (X, X, -X, -X, X, -X, X)],
)
case(
    "collectives_ring",
    "The ring operations of one rank: its successor and predecessor are itself; each channel has its tensors.",
    """
g = ncc.ReplicaGroup([[0]])
out = [nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm, name=f"o{i}") for i in range(4)]
ncc.collective_permute_implicit([[x], [y]], [[out[0]], [out[1]]], g, channel_ids=[0, 1])
ncc.collective_permute_implicit_reduce([[x]], [[y]], [[out[2]]], g, nl.add)
ncc.collective_permute_implicit_reduce([x], [y], [out[3]], g, op=nl.minimum)
return tuple(out)
""",
    {"x": Arg("float32", X), "y": Arg("float32", 30 - X)},
    [("float32", v) for v in (X, 30 - X, np.full_like(X, 30), np.minimum(X, 30 - X))],
)
case(
    "collectives_counted",
    "all_gather_v and all_to_all_v take counts and displacements from memory and write the count received.",
    """
g = ncc.ReplicaGroup([[0]])
a, b, z = (nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm, name=n) for n in "abz")
t = tile(x.shape, x.dtype)
nisa.memset(t, -1.0)
for o in (a, b):
    nisa.dma_copy(dst=o, src=t)
ncc.all_gather_v([x], [a], g, m)
ncc.all_to_all_v([x], [b], g, n, recv_counts_known=True, has_rdispls=True)
return a, b, m, n
""",
    {
        "x": Arg("float32", X),
        "m": Arg("uint32", [[5], [3], [99]]),
        "n": Arg("uint32", [[2], [20], [99], [7]]),
    },
    [
        ("float32", np.where(np.arange(24) < 5, np.roll(X.ravel(), -3), -1).reshape(X.shape)),
        ("float32", np.where((np.arange(24) >= 7) & (np.arange(24) < 9), np.roll(X.ravel(), 7 - 20), -1).reshape(X.shape)),
        ("uint32", [[5], [3], [5]]),
        ("uint32", [[2], [20], [99], [7]]),
        Out("uint32", [[5], [3], [5]], name="m"),
    ],
    types={"m": "nt.mutable_tensor", "n": "nt.mutable_tensor"},
)
