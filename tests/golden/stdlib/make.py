#!/usr/bin/env python3
"""Record what CPython and NumPy give for the programs of this folder whose first line says "Recorded".

    python3 make.py             write NAME.out beside each such NAME.nki
    python3 make.py --check     write nothing; fail when a recorded output differs

The others were written by hand from the documents. A program without a `# try:` line has a function
kernel() that takes nothing and prints; `nki check NAME.nki` runs it in the specializer, and its standard
output has to be NAME.out byte for byte. In one with a `# try:` line, formulas(numpy, ...) says what the
kernel must return, and NAME.out is how `nki run -q --print` shows that. Recorded with CPython 3.11 and
NumPy 1.24.
"""
import contextlib
import io
import pathlib
import re
import sys
import types
import warnings

import numpy

HERE = pathlib.Path(__file__).resolve().parent


def stub():
    nki = types.ModuleType("nki")
    nki.__path__ = []
    nki.jit = lambda function: function
    sys.modules["nki"] = nki
    for part in ("isa", "language"):
        sys.modules[f"nki.{part}"] = types.ModuleType(f"nki.{part}")


def shown(array):
    """A tensor as `nki run -q --print` shows it."""
    dtype, array = array if isinstance(array, tuple) else (array.dtype.name, array)

    def nested(a, depth):
        if a.ndim == 0:
            return f"{a.item():.9g}"
        gap = ", " if a.ndim == 1 else ",\n" + " " * (depth + 1)
        return "[" + gap.join(nested(row, depth + 1) for row in a) + "]"

    return f"{list(array.shape)} {dtype}\n{nested(array, 0)}"


def results(module, line):
    """What `nki run` prints for a program with a `# try:` line."""
    tensors = []
    for name, shape, rest in re.findall(r"(\w+)=float32\[([\d,]+)\]:(\w+)", line):
        assert rest == "arange"
        shape = [int(n) for n in shape.split(",")]
        tensors.append(numpy.arange(numpy.prod(shape), dtype=numpy.float32).reshape(shape))
    text = ""
    for i, array in enumerate(module.formulas(numpy, *tensors)):
        text += f"out{i} {shown(array)}\n"
    return text


def recorded(path):
    module = types.ModuleType(path.stem)
    sys.modules[path.stem] = module
    text = io.StringIO()
    with contextlib.redirect_stdout(text), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
        line = re.search(r"^# try: (.*)$", path.read_text(encoding="utf-8"), re.M)
        if line:
            return results(module, line.group(1))
        module.kernel()
    return text.getvalue()


def main():
    stub()
    failed = 0
    for path in sorted(HERE.glob("*.nki")):
        if "Recorded" not in path.read_text(encoding="utf-8").split("\n", 1)[0]:
            continue
        text = recorded(path)
        out = path.with_suffix(".out")
        if sys.argv[1:] == ["--check"]:
            if not out.exists() or out.read_text(encoding="utf-8") != text:
                print(f"{path.name}: differs")
                failed = 1
        else:
            out.write_text(text, encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())
