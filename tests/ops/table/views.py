"""Views: every method of a tensor. A view moves nothing; copying it shows what it selects."""
import numpy as np

import ref
from make import Arg, Out, case

X = ref.ramp(4, 3, 8)


def view(name, what, expr, want, shape=None, x=X, dtype="float32", out=None):
    """One view of an SBUF tile t, copied to a fresh tile; its shape is checked when the kernel is compiled."""
    want = np.asarray(want)
    shape = tuple(shape or want.shape)
    case(
        f"view_{name}",
        what,
        f"""
t = fetch(x)
v = {expr}
assert v.shape == {shape}, f"shape is {{v.shape}}"
y = tile(v.shape, v.dtype)
nisa.tensor_copy(dst=y, src=v)
return give(y)
""",
        {"x": Arg(dtype, x)},
        [(out or dtype, want.reshape(shape))],
    )


view("slice", "Slices with start, stop and step in free dimensions.", "t[:, 1:3, 2:8:3]", X[:, 1:3, 2:8:3])
view("slice_partitions", "A slice of the partitions.", "t[0:2, :, :]", X[0:2])
view("slice_open", "Open slices and negative numbers count as Python's.", "t[:, -2:, :-3]", X[:, -2:, :-3])
view("index_free", "An integer drops a free dimension; a negative one counts from the end.", "t[:, 1, :]", X[:, 1, :])
view("index_last", "The last free dimension stays as 1 when it is the only one left.", "t[:, 2, -1]", X[:, 2, -1:])
view("index_partition", "On chip an integer in the partition dimension keeps it as 1.", "t[0, :, :]", X[0:1])
view("ellipsis", "An ellipsis stands for the dimensions that are not named.", "t[..., 3:5]", X[..., 3:5])
view("ds", "nl.ds(start, size) is a slice by size.", "t[:, :, nl.ds(2, 4)]", X[:, :, 2:6])
view("chain", "Views of views.", "t[:, :, 1:8:2][:, 1:3, 1:4][:, 0, 1:3]", X[:, :, 1:8:2][:, 1:3, 1:4][:, 0, 1:3])
view("slice_method", "slice(dim, start, end, step).", "t.slice(2, 1, 8, 3)", X[:, :, 1:8:3])
view("select_method", "select(dim, index) drops a dimension.", "t.select(1, 2)", X[:, 2, :])
view("permute", "permute reorders the free dimensions.", "t.permute((0, 2, 1))", X.transpose(0, 2, 1))
view("expand_dim", "expand_dim inserts a dimension of 1.", "t.expand_dim(1)", X[:, None])
view("squeeze_dim", "squeeze_dim removes one.", "t[:, 0:1, :].squeeze_dim(1)", X[:, 0])
view("broadcast", "broadcast repeats a dimension of 1 with a stride of zero.", "t[:, 0:1, :].broadcast(1, 5)", np.repeat(X[:, 0:1], 5, 1))
view("broadcast_last", "broadcast of a column over a new last dimension.", "t[:, :, 0].expand_dim(2).broadcast(2, 4)", np.repeat(X[:, :, 0][:, :, None], 4, 2))
view("reshape_dim", "reshape_dim splits a dimension; -1 is worked out.", "t.reshape_dim(2, (2, -1))", X.reshape(4, 3, 2, 4))
view("flatten_dims", "flatten_dims merges neighbours.", "t.flatten_dims(1, 2)", X.reshape(4, 24))
view("reshape", "reshape keeps the partitions and the order.", "t.reshape((4, 2, 12))", X.reshape(4, 2, 12))
view("reshape_of_slice", "reshape of a view whose rows are apart, where the split allows it.", "t[:, 0:3:2, :].reshape((4, 2, 4, 2))", X[:, 0:3:2].reshape(4, 2, 4, 2))
view("rearrange_split", "rearrange splits, permutes and merges by names.", "t.rearrange(('p', 'a', ('b', 'c')), ('p', ('c',), 'a', 'b'), {'b': 4})", X.reshape(4, 3, 4, 2).transpose(0, 3, 1, 2))
view("rearrange_merge", "rearrange merges what stays in order.", "t.rearrange(('p', 'a', 'b'), ('p', ('a', 'b')))", X.reshape(4, 24))
view("ap_whole", "ap with the tile's own pattern is the tile.", "t.ap(pattern=[[24, 4], [8, 3], [1, 8]])", X)
view("ap_offset", "ap with an offset inside the partition.", "t.ap(pattern=[[24, 4], [1, 5]], offset=9)", X.reshape(4, 24)[:, 9:14])
view("ap_overlap", "An ap's windows may overlap.", "t.ap(pattern=[[24, 4], [2, 4], [1, 3]])", np.stack([X.reshape(4, 24)[:, s : s + 3] for s in (0, 2, 4, 6)], 1))
view("ap_stride_zero", "A free stride of zero repeats.", "t.ap(pattern=[[24, 2], [0, 3], [8, 2]])", np.repeat(X.reshape(4, 24)[:2, None, 0:16:8], 3, 1))
view("ap_backwards", "A negative free stride reads backwards.", "t.ap(pattern=[[24, 4], [-1, 6]], offset=7)", X.reshape(4, 24)[:, 7:1:-1])
view("ap_inherits_offset", "Without an offset, ap starts where its receiver starts.", "t[:, 1, 2:5].ap(pattern=[[24, 4], [1, 2]])", X[:, 1, 2:4])
view("ap_of_ap", "An ap of an ap forgets the inner pattern.", "t.ap(pattern=[[24, 4], [3, 2]]).ap(pattern=[[24, 4], [1, 3]])", X.reshape(4, 24)[:, :3])
I = np.array([[1, -2, 0x01020304, 2**31 - 1], [0, 256, 65536, -(2**31)]])
b16 = np.stack([I & 0xFFFF, (I >> 16) & 0xFFFF], -1).reshape(2, 8)
b16 = np.where(b16 >= 2**15, b16 - 2**16, b16)
view("bitcast_narrow", "view(dtype) reads the same bytes: one int32 is two int16, low half first.", "t.view(nl.int16)", b16, x=I, dtype="int32", out="int16")
view("bitcast_wide", "view(dtype) joins narrow elements.", "t.view(nl.int32)", I, x=b16, dtype="int16", out="int32")
F = np.array([[1.0, -2.5, 0.0, 2.0**-126]])
view("bitcast_float", "The bits of a float as an integer.", "t.view(nl.uint32)", F.astype(np.float32).view(np.uint32).astype(np.int64), x=F, dtype="float32", out="uint32")
view("reinterpret_cast", "reinterpret_cast is the same.", "t.reinterpret_cast(nl.uint32)", F.astype(np.float32).view(np.uint32).astype(np.int64), x=F, dtype="float32", out="uint32")
view("ap_dtype", "ap can change the type: counts and strides are then in the new one.", "t.ap(pattern=[[8, 2], [2, 4]], dtype=nl.int16)", b16[:, 0::2], x=I, dtype="int32", out="int16")

case(
    "view_write",
    "Writing through views: a strided column, a broadcast source, a permuted destination.",
    """
t = fetch(x)
nisa.tensor_copy(dst=t[:, :, 0:8:4], src=t[:, :, 1:2].broadcast(2, 2))
y = tile((4, 8, 3), nl.float32)
nisa.tensor_copy(dst=y.permute((0, 2, 1)), src=t)
return give(y)
""",
    {"x": Arg("float32", X)},
    [("float32", np.where(np.arange(8) % 4 == 0, X[:, :, 1:2], X).transpose(0, 2, 1))],
)
case(
    "view_attributes",
    "Attributes of tensors and views, all known when the kernel is compiled.",
    """
t = tile((4, 3, 8), nl.float32)
assert t.shape == (4, 3, 8) and t.ndim == 3 and t.size == 96
assert tuple(t.strides) == (24, 8, 1) and t.offset == 0
assert t.dtype == nl.float32 and t.buffer == nl.sbuf
v = t[:, 1:3, 2:8:2]
assert v.shape == (4, 2, 3) and tuple(v.strides) == (24, 8, 2) and v.offset == 10
assert [list(p) for p in v.get_pattern()] == [[24, 4], [8, 2], [2, 3]]
assert t.is_contiguous() and not v.is_contiguous() and t[0:2, :, :].is_contiguous()
assert not t.is_indirect()
assert nl.is_sbuf(t.buffer) and nl.is_on_chip(t.buffer) and not nl.is_psum(t.buffer) and not nl.is_hbm(t.buffer)
assert x.shape == (2, 3) and nl.is_hbm(x.buffer) and x.buffer == nl.hbm
p = bank((4, 8))
assert nl.is_psum(p.buffer) and nl.is_on_chip(p.buffer)
return give(fetch(x))
""",
    {"x": Arg("float32", ref.ramp(2, 3))},
    [("float32", ref.ramp(2, 3))],
)
case(
    "view_hbm",
    "HBM tensors have no partition: an integer drops any dimension, any order and step will do.",
    """
a, b, c = tile((3, 8), nl.float32), tile((8, 3), nl.float32), tile((2, 8), nl.float32)
nisa.dma_copy(dst=a, src=x[2])
nisa.dma_copy(dst=b, src=x[1].permute((1, 0)))
nisa.dma_copy(dst=c, src=x[1:4:2, 0, :])
return give(a), give(b), give(c)
""",
    {"x": Arg("float32", X)},
    [("float32", X[2]), ("float32", X[1].T), ("float32", X[1:4:2, 0])],
)
case(
    "view_hbm_reshape",
    "An HBM reshape may change every dimension.",
    """
y = tile((12, 8), nl.float32)
nisa.dma_copy(dst=y, src=x.reshape((12, 8)))
z = tile((8, 12), nl.float32)
nisa.dma_copy(dst=z, src=x.rearrange(('a', 'b', 'c'), ('c', ('a', 'b'))))
return give(y), give(z)
""",
    {"x": Arg("float32", X)},
    [("float32", X.reshape(12, 8)), ("float32", X.reshape(12, 8).T)],
)
case(
    "view_hbm_column",
    "A 1-D tensor as a column of lanes by an access pattern.",
    """
y = tile((8, 1), nl.float32)
nisa.dma_copy(dst=y, src=x.ap(pattern=[[1, 8], [1, 1]], offset=4))
return give(y)
""",
    {"x": Arg("float32", ref.ramp(16))},
    [("float32", ref.ramp(8, 1, start=4))],
)
case(
    "view_shares_storage",
    "Two views of one tile see each other's writes, in program order.",
    """
t = fetch(x)
a, b = t[:, 0, :], t.flatten_dims(1, 2)
nisa.memset(dst=b[:, 2:4], value=7.0)
y = tile((4, 8), nl.float32)
nisa.tensor_copy(dst=y, src=a)
nisa.memset(dst=a, value=0.0)
return give(y)
""",
    {"x": Arg("float32", X)},
    [("float32", np.where((np.arange(8) == 2) | (np.arange(8) == 3), 7.0, X[:, 0]))],
)
