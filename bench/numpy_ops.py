#!/usr/bin/python3
"""The programs of kernels.nki as NumPy calls, one instruction at a time: what a NumPy simulator cannot be faster than.

    numpy_ops.py [--reps N] [--one-array] [PROGRAM...]
    TSV: program, instructions, iterations, ns (median), spread, sum of |result|; first a comment that names the BLAS

A program is a list of (function, arguments) made beforehand; running it is a loop over that list, so nothing is interpreted,
checked or allocated meanwhile. Every call writes with out= into a tile that exists. Times are CPU time of the one thread.
spread is (third quartile - first) / median.

Each tile is an array of its own, contiguous: more than a simulator whose addresses can alias could have, and the most that NumPy
gives. With --one-array tiles are slices of one array for SBUF and one for PSUM, as such a simulator would have them.
"""
import argparse
import ctypes
import os
import sys
import time

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"



def widest_core():
    """OpenBLAS falls back to SSE on processors younger than itself: name the kernels that fit this one's instructions."""
    with open("/proc/cpuinfo") as f:
        flags = next((line.split() for line in f if line.startswith("flags")), [])
    return "SkylakeX" if "avx512f" in flags else "Haswell" if "avx2" in flags else None


if widest_core():
    os.environ.setdefault("OPENBLAS_CORETYPE", widest_core())

import numpy as np

LANES, BANK = 128, 512


def pattern(rows, cols, salt):
    """Inputs that bench_exec makes too: small, of both signs, exact."""
    i = np.arange(rows * cols, dtype=np.int64)
    return (((i * 37 + salt) % 101 - 50) / 64.0).astype(np.float32).reshape(rows, cols)


class Memory:
    """SBUF or PSUM: hands out arrays, or slices of one. The pitch is no power of two: equal cache sets hurt."""

    def __init__(self, one_array, floats_per_lane):
        self.array = np.zeros((LANES, floats_per_lane + 16), np.float32) if one_array else None
        self.used = 0

    def tile(self, rows, cols):
        if self.array is None:
            return np.zeros((rows, cols), np.float32)
        self.used += cols
        assert self.used <= self.array.shape[1], "a program needs more than a partition holds"
        return self.array[:rows, self.used - cols : self.used]


memory = {}


def start_memory(one_array):
    memory["sbuf"], memory["psum"] = Memory(one_array, 57344), Memory(one_array, 4096)


def tile(rows, cols):
    return memory["sbuf"].tile(rows, cols)


def bank(rows, cols):
    return memory["psum"].tile(rows, cols)


def blas():
    with open("/proc/self/maps") as maps:
        files = sorted({line.split()[-1] for line in maps if "blas" in line.rsplit("/", 1)[-1]})
    names = []
    for f in files:
        try:
            get = ctypes.CDLL(f).openblas_get_corename
            get.restype = ctypes.c_char_p
            names.append(f"{os.path.basename(f)} ({get().decode()})")
        except (OSError, AttributeError):
            names.append(os.path.basename(os.path.realpath(f)))
    if not any("(" in n for n in names):
        print("# warning: no OpenBLAS: matmul and attention are slower than NumPy can be", flush=True)
    return ", ".join(names) or "unknown"


# Instructions. Each is one NumPy call or the few that it needs.
copy = np.copyto


def fill(dst, value):
    dst.fill(value)


def matmul(acc, product, stationary, moving):
    np.matmul(stationary.T, moving, out=product)
    np.add(acc, product, out=acc)


def matmul_first(acc, stationary, moving):
    np.matmul(stationary.T, moving, out=acc)


def transpose(dst, src):
    np.copyto(dst, src.T)


def row_max(dst, src):
    np.max(src, axis=1, keepdims=True, out=dst)


def square_sum(dst, res, src):
    np.square(src, out=dst)
    np.sum(dst, axis=1, keepdims=True, out=res)


def rsqrt(dst, src, scale, bias):
    np.multiply(src, scale, out=dst)
    np.add(dst, bias, out=dst)
    np.sqrt(dst, out=dst)
    np.reciprocal(dst, out=dst)


def exp_sum(dst, res, src, bias):
    np.add(src, bias, out=dst)
    np.exp(dst, out=dst)
    np.sum(dst, axis=1, keepdims=True, out=res)


def scaled_exp_sum(dst, res, src, scale, bias):
    np.multiply(src, scale, out=dst)
    exp_sum(dst, res, dst, bias)


def exp_bias(dst, src, bias):
    np.add(src, bias, out=dst)
    np.exp(dst, out=dst)


def multiply_then(second, dst, data, operand0, operand1):
    np.multiply(data, operand0, out=dst)
    second(dst, operand1, out=dst)


def add_program(a, b, out):
    x, y = tile(LANES, BANK), tile(LANES, BANK)
    p = []
    for r in range(0, a.shape[0], LANES):
        for c in range(0, a.shape[1], BANK):
            here = np.s_[r : r + LANES, c : c + BANK]
            p += [(copy, (x, a[here])), (copy, (y, b[here])), (np.add, (x, y, x)), (copy, (out[here], x))]
    return p


def matmul_program(a, b, out):
    x, y, t, acc, product = tile(LANES, LANES), tile(LANES, BANK), tile(LANES, BANK), bank(LANES, BANK), bank(LANES, BANK)
    p = []
    for m in range(0, a.shape[1], LANES):
        for n in range(0, b.shape[1], BANK):
            p.append((fill, (acc, 0.0)))
            for k in range(0, a.shape[0], LANES):
                p += [(copy, (x, a[k : k + LANES, m : m + LANES])), (copy, (y, b[k : k + LANES, n : n + BANK])), (matmul, (acc, product, x, y))]
            p += [(copy, (t, acc)), (copy, (out[m : m + LANES, n : n + BANK], t))]
    return p


def rmsnorm_program(a, b, out):
    cols = a.shape[1]
    x, y, s, weight = tile(LANES, cols), tile(LANES, cols), tile(LANES, 1), tile(LANES, cols)
    p = [(copy, (weight, b))]
    for r in range(0, a.shape[0], LANES):
        rows = np.s_[r : r + LANES]
        p += [(copy, (x, a[rows])), (square_sum, (y, s, x)), (rsqrt, (s, s, np.float32(1 / cols), np.float32(1e-6)))]
        p += [(np.multiply, (x, s, x)), (np.multiply, (x, weight, x)), (copy, (out[rows], x))]
    return p


def softmax_program(a, b, out):
    cols = a.shape[1]
    x, top, total = tile(LANES, cols), tile(LANES, 1), tile(LANES, 1)
    p = []
    for r in range(0, a.shape[0], LANES):
        rows = np.s_[r : r + LANES]
        p += [(copy, (x, a[rows])), (row_max, (top, x)), (np.multiply, (top, np.float32(-1), top)), (exp_sum, (x, total, x, top))]
        p += [(np.reciprocal, (total, total)), (np.multiply, (x, total, x)), (copy, (out[rows], x))]
    return p


def attention_program(a, b, out):
    d, n = a.shape
    v = b.reshape(-1)[d * n :].reshape(n, d)
    scale = np.float32(1 / 128**0.5)
    q, k, vt, scores, weights = tile(d, LANES), tile(d, BANK), tile(LANES, d), bank(LANES, BANK), tile(LANES, BANK)
    tops, minus, part, factor, total = [tile(LANES, 1), tile(LANES, 1)], tile(LANES, 1), tile(LANES, 1), tile(LANES, 1), tile(LANES, 1)
    turned, p_t, acc, product, o = bank(LANES, LANES), tile(LANES, LANES), bank(LANES, d), bank(LANES, d), tile(LANES, d)
    p = []
    for q0 in range(0, n, LANES):
        p += [(copy, (q, a[:, q0 : q0 + LANES])), (fill, (tops[0], -1e30)), (fill, (total, 0.0)), (fill, (o, 0.0))]
        for i, k0 in enumerate(range(0, n, BANK)):
            top, new = tops[i % 2], tops[(i + 1) % 2]
            p += [(copy, (k, b[:d, k0 : k0 + BANK])), (matmul_first, (scores, q, k)), (row_max, (new, scores))]
            p += [(multiply_then, (np.maximum, new, new, scale, top)), (np.multiply, (new, np.float32(-1), minus))]
            p += [(scaled_exp_sum, (weights, part, scores, scale, minus)), (exp_bias, (factor, top, minus))]
            p += [(multiply_then, (np.add, total, total, factor, part))]
            for j in range(0, BANK, LANES):
                p += [(transpose, (turned, weights[:, j : j + LANES])), (copy, (p_t, turned)), (copy, (vt, v[k0 + j : k0 + j + LANES]))]
                p.append((matmul_first, (acc, p_t, vt)) if j == 0 else (matmul, (acc, product, p_t, vt)))
            p.append((multiply_then, (np.add, o, o, factor, acc)))
        p += [(np.reciprocal, (total, total)), (np.multiply, (o, total, o)), (copy, (out[q0 : q0 + LANES], o))]
    return p


def small_program(a, b, out):
    x, y = tile(LANES, 8), tile(LANES, 8)
    four = [(np.add, (x, y, x)), (np.multiply, (x, np.float32(0.5), x)), (np.maximum, (x, y, x)), (np.tanh, (x, x))]
    return [(copy, (x, a)), (copy, (y, b))] + four * 2500 + [(copy, (out, x))]


# name: (program, shape of a, of b, of the result)
PROGRAMS = {
    "matmul": (matmul_program, (1024, 1024), (1024, 1024), (1024, 1024)),
    "rmsnorm": (rmsnorm_program, (4096, 1024), (128, 1024), (4096, 1024)),
    "softmax": (softmax_program, (4096, 2048), (1, 1), (4096, 2048)),
    "attention": (attention_program, (128, 2048), (256, 2048), (2048, 128)),
    "add": (add_program, (8192, 2048), (8192, 2048), (8192, 2048)),
    "small": (small_program, (128, 8), (128, 8), (128, 8)),
}


def run(program):
    for f, args in program:
        f(*args)


def main(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--reps", type=int, default=9)
    p.add_argument("--one-array", action="store_true")
    p.add_argument("programs", nargs="*", default=list(PROGRAMS))
    options = p.parse_args(argv)
    print(f"# NumPy {np.__version__}, BLAS {blas()}")
    for name in options.programs:
        make, a_shape, b_shape, out_shape = PROGRAMS[name]
        start_memory(options.one_array)
        a, b, out = pattern(*a_shape, 1), pattern(*b_shape, 2), np.zeros(out_shape, np.float32)
        program = make(a, b, out)
        run(program)
        times = []
        for _ in range(options.reps):
            start = time.thread_time_ns()
            run(program)
            times.append(time.thread_time_ns() - start)
        q1, median, q3 = np.percentile(times, [25, 50, 75])
        check = np.abs(out, dtype=np.float64).sum()
        print(f"{name}\t{len(program)}\t{options.reps}\t{median:.0f}\t{(q3 - q1) / median:.3f}\t{check:.9g}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
