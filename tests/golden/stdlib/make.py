#!/usr/bin/env python3
"""Record what CPython (and NumPy) print for the programs of this folder whose first line says "Recorded".

    python3 make.py             write NAME.out beside each such NAME.nki
    python3 make.py --check     write nothing; fail when a recorded output differs

The others were written by hand from the documents. Each NAME.nki has a function kernel() that takes
nothing and prints; `nki check NAME.nki` runs it in the specializer, and its standard output has to be
NAME.out byte for byte. Recorded with CPython 3.11 and NumPy 1.24.
"""
import contextlib
import io
import pathlib
import sys
import types
import warnings

HERE = pathlib.Path(__file__).resolve().parent


def stub():
    nki = types.ModuleType("nki")
    nki.jit = lambda function: function
    sys.modules["nki"] = nki


def recorded(path):
    module = types.ModuleType(path.stem)
    sys.modules[path.stem] = module
    text = io.StringIO()
    with contextlib.redirect_stdout(text), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
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
