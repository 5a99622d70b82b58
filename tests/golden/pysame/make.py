#!/usr/bin/env python3
"""Record what CPython prints for every program of this folder.

    python3 make.py             write NAME.out beside each NAME.nki
    python3 make.py --check     write nothing; fail when a recorded output differs
    python3 make.py NAME...     only these programs (with or without .nki)

Each NAME.nki is ordinary Python with a function kernel() that takes nothing and prints. Here it is
run by CPython, with a stub in place of the nki package; `nki check NAME.nki` runs the same function
in the specializer, and its standard output has to be NAME.out byte for byte.

The outputs in the repository were recorded with CPython 3.11.7. Messages of exceptions and the
printed form of enum members depend on the version, so any other version than 3.11 is refused.

Each program runs twice, with different hash seeds: one that prints an address, or something that
depends on hashing, is reported and not recorded. So is one that ends in an exception.
"""
import os
import pathlib
import subprocess
import sys

RECORDED_WITH = (3, 11)
HERE = pathlib.Path(__file__).resolve().parent

# What a child process executes: the stub package first, then the program named by argv[1].
CHILD = r"""
import os, sys, types

def jit(fn=None, **options):
    return fn if fn is not None else (lambda real: real)

nki = types.ModuleType("nki")
nki.__path__ = []
language = types.ModuleType("nki.language")
nki.jit = jit
nki.language = language
language.NKIObject = type("NKIObject", (), {})
sys.modules["nki"] = nki
sys.modules["nki.language"] = language

path = sys.argv[1]
name = os.path.splitext(os.path.basename(path))[0]  # as if imported: never "__main__"
module = types.ModuleType(name)
module.__file__ = path
sys.modules[name] = module
with open(path, encoding="utf-8") as file:
    exec(compile(file.read(), path, "exec"), module.__dict__)
module.kernel()
"""


def run(path, seed):
    """Return (exit code, stdout bytes, stderr text) of one program."""
    env = {"PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8", "PATH": os.environ.get("PATH", "")}
    command = [sys.executable, "-S", "-W", "ignore", "-c", CHILD, path.name]
    done = subprocess.run(command, cwd=path.parent, env=env, capture_output=True, timeout=60)
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")


def main(arguments):
    if sys.version_info[:2] != RECORDED_WITH:
        sys.exit("make.py: CPython %d.%d is needed" % RECORDED_WITH)
    check = "--check" in arguments
    names = [a.removesuffix(".nki") for a in arguments if not a.startswith("-")]
    paths = [HERE / (name + ".nki") for name in names] or sorted(HERE.glob("*.nki"))
    faults = 0
    for path in paths:
        code, out, err = run(path, "1")
        if code != 0:
            print("%s: ended with an exception\n%s" % (path.name, err), file=sys.stderr)
        elif not out:
            print("%s: printed nothing" % path.name, file=sys.stderr)
        elif run(path, "2")[1] != out or b" at 0x" in out:
            print("%s: output is not deterministic" % path.name, file=sys.stderr)
        elif check and path.with_suffix(".out").read_bytes() != out:
            print("%s: differs from the recorded output" % path.name, file=sys.stderr)
        else:
            if not check:
                path.with_suffix(".out").write_bytes(out)
            continue
        faults += 1
    print("%d programs, %d faults" % (len(paths), faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
