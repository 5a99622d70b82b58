#!/usr/bin/env python3
"""Writes the operation tests: NAME.nki and NAME.expect for each case of table/*.py. Needs NumPy; the tests themselves do not.

    make.py            write everything, remove what no case makes any more
    make.py --check    write nothing; exit 1 when a file differs from what would be written

A case is a kernel's body, its arguments and what it must return. In a body, fetch(x) is an SBUF copy of an HBM argument, tile(shape,
dtype) a new SBUF tile, bank(shape) a new fp32 PSUM tile, give(t) an HBM copy of a tile, for returning. Expected values come from
ref.py and NumPy, never from a run of our own tool.

NAME.expect, line by line:
    # comment
    target trn3                          default: trn2
    grid 2                               default: launched without a grid
    arg NAME DTYPE [4,6]: v v v ...      a tensor argument, row-major
    arg NAME = LITERAL                   any other argument, as on the command line
    OUT DTYPE [2,3] rtol R atol A: v ... a result: out0, out1, ... or the name of an argument that the kernel writes
"""
import importlib
import os
import re
import sys

import numpy as np

import ref

HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = ["convert", "alu", "activation", "reduce", "matmul", "move", "search", "dma", "views", "control", "language", "extra", "cores", "mx", "indirect", "names"]
CASES = {}

HELPERS = {
    "fetch": """
def fetch(x):
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    return t
""",
    "tile": """
def tile(shape, dtype):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)
""",
    "bank": """
def bank(shape):
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.psum)
""",
    "give": """
def give(t):
    out = nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    return out
""",
}


class Arg:
    """A tensor argument. Values must be exact in dtype, except that tables may pass values to be rounded to a float type."""

    def __init__(self, dtype, values):
        self.dtype, self.values = dtype, np.asarray(values, np.float64)
        assert np.array_equal(self.values, stored(self.values, dtype), equal_nan=True), f"not exact in {dtype}"


class Out:
    """An expected result. rtol = atol = 0 means every bit (a NaN is a NaN)."""

    def __init__(self, dtype, values, rtol=0.0, atol=0.0, name=None):
        self.dtype, self.rtol, self.atol, self.name = dtype, rtol, atol, name
        self.values = np.asarray(values, np.float64)
        if rtol == 0 and atol == 0:
            assert np.array_equal(self.values, stored(self.values, dtype), equal_nan=True), f"not exact in {dtype}"


def stored(values, dtype):
    return ref.round_float(values, dtype) if dtype in ref.FLOATS else ref.round_int(values, dtype)


def case(name, what, body, args=None, outs=(), target=None, before="", types=None, grid=None):
    """body: the kernel's lines. before: lines above the kernel (helpers, classes). args: dict of Arg or literal. types: annotations by name."""
    assert name not in CASES, f"two cases are called {name}"
    CASES[name] = (what, body, args or {}, [o if isinstance(o, Out) else Out(*o) for o in outs], target, before, types or {}, grid)


def number(v, dtype):
    if dtype in ref.INTS:
        return str(int(v))
    if np.isnan(v):
        return "nan"
    if np.isinf(v):
        return "inf" if v > 0 else "-inf"
    text = repr(float(np.float32(v)))
    short = str(np.float32(v))
    return (short if float(np.float32(float(short))) == float(np.float32(v)) else text).removesuffix(".0")


def array(dtype, values):
    shape = ",".join(str(n) for n in values.shape)
    return f"{dtype} [{shape}]", " ".join(number(v, dtype) for v in values.reshape(-1))


def indent(text):
    return "".join(f"    {line}\n" if line else "\n" for line in text.strip("\n").split("\n"))


def try_value(value):
    if not isinstance(value, Arg):
        return value  # already as on the command line
    shape = ",".join(str(n) for n in value.values.shape)
    # Small numbers are legal wherever a test takes tensors, as counts and indices too.
    fill = "ones" if value.dtype in ref.INTS else "rand(0.5,2)"
    return f"{value.dtype}[{shape}]:{fill}"


def kernel_text(name):
    what, body, args, _, target, before, types, grid = CASES[name]
    text = "".join(f"# {line}\n" for line in what.strip().split("\n"))
    if args:
        text += "# try: " + " ".join(f"{n}={try_value(v)}" for n, v in args.items()) + "\n"
    text += "" if target is None else f"# target: {target}\n"
    text += "" if grid is None else f"# grid: {grid}\n"
    code = before + body
    used = {h for h in HELPERS if re.search(rf"\b{h}\(", code)}
    head = [f"import {m}" for m in ("math",) if re.search(rf"\b{m}\.", code)]
    head += [re.match(r"\s*(from dataclasses .*)", line).group(1) for line in before.split("\n") if line.startswith("from dataclasses")]
    head += [""] if head else []
    head += ["import nki"]
    head += ["import nki.isa as nisa"] if "nisa." in code or used & {"fetch", "give"} else []
    head += ["import nki.language as nl"] if "nl." in code or used else []
    head += ["import nki.collectives as ncc"] if "ncc." in code else []
    head += ["import nki.typing as nt"] if any("nt." in t for t in types.values()) else []
    text += "\n".join(head) + "\n\n"
    before = "\n".join(line for line in before.split("\n") if not line.startswith("from dataclasses"))
    text += "".join(HELPERS[h] + "\n" for h in HELPERS if h in used)
    text = text.rstrip("\n") + "\n\n\n"
    text += before.strip("\n") + "\n\n\n" if before.strip() else ""
    text = text.rstrip("\n") + "\n\n\n"
    params = ", ".join(f"{n}: {types[n]}" if n in types else n for n in args)
    return text + f"@nki.jit\ndef kernel({params}):\n{indent(body)}"


def expect_text(name):
    _, _, args, outs, target, _, _, grid = CASES[name]
    lines = ["# Made by make.py."] + ([f"target {target}"] if target else []) + ([f"grid {grid}"] if grid else [])
    for n, v in args.items():
        if isinstance(v, Arg):
            lines.append("arg {} {}: {}".format(n, *array(v.dtype, v.values)))
        else:
            lines.append(f"arg {n} = {v}")
    count = 0
    for o in outs:
        out = o.name or f"out{count}"
        count += o.name is None
        kind, values = array(o.dtype, o.values)
        lines.append(f"{out} {kind} rtol {o.rtol:g} atol {o.atol:g}: {values}")
    return "\n".join(lines) + "\n"


def main():
    sys.path.insert(0, HERE)
    sys.modules["make"] = sys.modules["__main__"]
    for t in TABLES:
        importlib.import_module(f"table.{t}")
    files = {}
    for name in CASES:
        files[name + ".nki"], files[name + ".expect"] = kernel_text(name), expect_text(name)
    folder = os.path.join(HERE, "cases")
    os.makedirs(folder, exist_ok=True)
    stale = [f for f in sorted(os.listdir(folder)) if f not in files]
    differ = []
    for f, text in files.items():
        path = os.path.join(folder, f)
        old = open(path).read() if os.path.exists(path) else None
        if old != text:
            differ.append(f)
            if "--check" not in sys.argv:
                with open(path, "w") as out:
                    out.write(text)
    if "--check" in sys.argv:
        for f in differ + stale:
            print(f"differs: {f}")
        return 1 if differ or stale else 0
    for f in stale:
        os.remove(os.path.join(folder, f))
    print(f"{len(CASES)} cases, {len(differ)} files written, {len(stale)} removed")
    return 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
