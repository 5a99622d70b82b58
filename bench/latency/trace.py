#!/usr/bin/env python3
"""trace.py TRACE.json FILE::KERNEL NAME=VALUE...: a published instruction trace beside the clock's.

TRACE.json is a profile exported by the public profiler (its lists `instruction` and `dma`). Per engine and class of
instruction: how many, how long one of the class was under way (overlaps counted once), from the first to the last.
Microseconds. The published trace counts each pass of an fp32 multiply; the clock counts the instruction.
"""
import json
import os
import subprocess
import sys

# Published opcode -> class. What only frames a run (branches, notifications, semaphores) is left out.
PUBLISHED = {
    "ACTIVATE": "activation", "COPY": "copy", "RECIPROCAL": "reciprocal", "TENSOR_REDUCE": "reduce",
    "TENSOR_SCALAR": "scalar", "ACT_TABLE_LOAD": "table load",
}
OURS = {
    "activation": "activation", "tensor_copy": "copy", "reciprocal": "reciprocal", "tensor_reduce": "reduce",
    "tensor_scalar": "scalar", "nc_transpose": "transpose", "nc_matmul": "multiply", "act_table_load": "table load",
}


def published(path):
    with open(path) as f:
        profile = json.load(f)
    for i in profile["instruction"]:
        if i["opcode"] in ("MATMUL", "LDWEIGHTS"):
            kind = "transpose" if i["instruction_type"] == "TRANSPOSE" else "multiply"
            yield i["subgroup"], kind, i["timestamp"], i["timestamp"] + i["duration"], i["opcode"] == "MATMUL"
        elif i["opcode"] in PUBLISHED:
            yield i["subgroup"], PUBLISHED[i["opcode"]], i["timestamp"], i["timestamp"] + i["duration"], True
    for i in profile["dma"]:
        if i["queue_type"] == "software_dynamic":
            yield "DMA", "packets moving", i["timestamp"], i["timestamp"] + i["duration"], True


def ours(nki, words):
    text = subprocess.run([nki, "profile", *words, "--json", "-", "--instructions"], check=True, capture_output=True).stdout
    for i in json.loads(text)["instruction"]:
        engine = i["engine"].split(".")[0]
        kind = "packets moving" if engine == "DMA" else OURS.get(i["opcode"])
        if kind:
            yield engine, kind, i["start_ns"], i["end_ns"], True


def table(rows):
    spans = {}
    for engine, kind, lo, hi, counts in rows:
        spans.setdefault((engine, kind), []).append((lo, hi, counts))
    out = {}
    for key, list_ in spans.items():
        busy, until = 0.0, 0.0
        for lo, hi, _ in sorted(list_):
            busy += max(0.0, hi - max(lo, until))
            until = max(until, hi)
        out[key] = sum(c for _, _, c in list_), busy / 1e3, (until - min(lo for lo, _, _ in list_)) / 1e3
    return out


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    nki = os.environ.get("NKI", os.path.join(root, "build/release/nki"))
    want, got = table(published(sys.argv[1])), table(ours(nki, sys.argv[2:]))
    print(f"{'engine':8} {'class':14} {'published':>9} {'busy':>7} {'span':>7}   {'clock':>5} {'busy':>7} {'span':>7}")
    for key in sorted(want.keys() | got.keys()):
        w, g = want.get(key, (0, 0, 0)), got.get(key, (0, 0, 0))
        print(f"{key[0]:8} {key[1]:14} {w[0]:9d} {w[1]:7.2f} {w[2]:7.2f}   {g[0]:5d} {g[1]:7.2f} {g[2]:7.2f}")


main()
