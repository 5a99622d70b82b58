"""Number formats and the order of arithmetic, written from the documents for the expected values of tests/ops.

Nothing here comes from or calls the project's code. Values are NumPy float64 or int64 arrays; a value of a narrow type is
held as the float64 it stands for. NumPy's float32 is used where the contract says "one fp32 operation".
"""
import numpy as np

# name: (bits of fraction, exponent bias, largest finite value, what lies beyond it)
FLOATS = {
    "float32": (23, 127, float(np.finfo(np.float32).max), "inf"),
    "bfloat16": (7, 127, 3.3895313892515355e38, "inf"),
    "float16": (10, 15, 65504.0, "inf"),
    "float8_e5m2": (2, 15, 57344.0, "inf"),
    "float8_e4m3": (3, 7, 240.0, "inf"),
}
INTS = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
}


def round_float(x, dtype):
    """The nearest value of a float format, ties to even, subnormals kept, overflow to infinity."""
    fraction, bias, top, _ = FLOATS[dtype]
    x = np.asarray(x, np.float64)
    _, e = np.frexp(np.where(np.isfinite(x), x, 1.0))
    step = np.exp2(np.maximum(e - 1, 1 - bias) - fraction)
    y = np.where(np.isfinite(x), np.rint(np.where(np.isfinite(x), x, 0.0) / step) * step, x)
    return np.where(np.abs(y) > top, np.copysign(np.inf, y), y)


def round_int(x, dtype):
    """Nearest integer, ties to even, saturated to the type's range."""
    lo, hi = INTS[dtype]
    return np.clip(np.rint(np.asarray(x, np.float64)), lo, hi)


def cast(x, dtype):
    """What a compute instruction or a converting DMA writes: the fp32 value, rounded to the destination."""
    x = round_float(x, "float32")
    return round_float(x, dtype) if dtype in FLOATS else round_int(x, dtype)


def convert(x, source, dest):
    """A copy: equal types keep every bit, others go through fp32."""
    return np.asarray(x, np.float64) if source == dest else cast(x, dest)


def f32(x):
    return np.asarray(x, np.float32)


def sum16(row):
    """The order in which a row is summed: element i into partial i mod 16, then 8, 4, 2, 1. fp32 throughout."""
    part = np.zeros(16, np.float32)
    for i, v in enumerate(np.asarray(row, np.float32)):
        part[i % 16] = part[i % 16] + v
    width = 8
    while width >= 1:
        part[:width] = part[:width] + part[width : 2 * width]
        width //= 2
    return part[0]


def fma32(a, b, c):
    """One fused multiply-add in fp32: exact product and sum in integers, one rounding."""
    from fractions import Fraction

    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return np.float32(0)
    # float(Fraction) rounds to double, correctly; a second rounding could differ only at a tie of the first.
    near = np.float32(float(exact))
    best = min((near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))), key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.int32)) & 1))
    return best


def matmul_chain(stationary, moving):
    """nc_matmul's result element by element: fp32 fused multiply-adds, k upward from zero."""
    k_n, m_n = stationary.shape
    n_n = moving.shape[1]
    out = np.zeros((m_n, n_n), np.float32)
    for m in range(m_n):
        for n in range(n_n):
            acc = np.float32(0)
            for k in range(k_n):
                acc = fma32(stationary[k, m], moving[k, n], acc)
            out[m, n] = acc
    return out


def erf(x):
    import math

    return np.vectorize(math.erf)(np.asarray(x, np.float64))


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-np.asarray(x, np.float64)))


def softplus(x):
    return np.logaddexp(0.0, np.asarray(x, np.float64))


def gelu(x):
    return x / 2 * (1 + erf(x / np.sqrt(2)))


def gelu_dx(x):
    return (1 + erf(x / np.sqrt(2))) / 2 + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def gelu_tanh(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu_sigmoid(x):
    return x * sigmoid(1.702 * x)


def gelu_sigmoid_dx(x):
    s = sigmoid(1.702 * x)
    return s + 1.702 * x * s * (1 - s)


def silu_dx(x):
    s = sigmoid(x)
    return s * (1 + x * (1 - s))


def affine(pattern, lanes, offset=0, multiplier=0):
    """The value that iota and affine_select compute for each lane and free element: [lanes, product of counts]."""
    free = np.zeros(1, np.int64)
    for step, count in pattern:
        free = (free[:, None] + step * np.arange(count)[None, :]).reshape(-1)
    return offset + multiplier * np.arange(lanes)[:, None] + free[None, :]


def ramp(*shape, start=0.0, step=1.0):
    """Numbers in a row-major rising line: easy to read in a failing test."""
    n = int(np.prod(shape))
    return (start + step * np.arange(n)).reshape(shape)


def pick(seed, *shape, lo=-2.0, hi=2.0):
    """Reproducible values with few fraction bits, so that every float type but the 8-bit ones holds them."""
    values = np.random.RandomState(seed).randint(0, 129, shape)
    return lo + (hi - lo) * values / 128.0
