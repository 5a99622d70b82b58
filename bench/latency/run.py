#!/usr/bin/env python3
"""Predicted against measured latency: see README.md."""
import argparse
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NCL_US = 8.9    # machine.def: benchmark_launch_ns
TOTAL_US = 15.6  # machine.def: launch_ns + teardown_ns


def cases():
    with open(os.path.join(HERE, "cases.tsv"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                yield line.rstrip("\n").split("\t")


def kernel_path(kernel, ref):
    if not kernel.startswith("ref:"):
        return os.path.join(HERE, kernel)
    return os.path.join(ref, kernel[4:]) if ref else None


def run(nki, path, values, target, extra):
    command = [nki, "profile", path, *values.split(), "--target", target, "--json", "-", *extra]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1] if done.stderr else "failed", 0
    return json.loads(done.stdout), "", time.monotonic() - began


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--nki", default=os.path.join(HERE, "../../build/release/nki"))
    ap.add_argument("--ref", help="folder with the public repositories, owner+name each")
    ap.add_argument("--only", help="comma list of ids")
    ap.add_argument("--target", default="trn2")
    ap.add_argument("--machine", action="append", default=[], metavar="NAME=NUMBER",
                    help="a timing constant to change: shows every row's change")
    a = ap.parse_args()
    extra = [w for m in a.machine for w in ("--machine", m)]
    print(f"{'case':6} {'use':6} {'metric':6} {'measured':>10} {'predicted':>10} {'error':>8}"
          f" {'body':>10} {'offset':>7}  {'PE':>5} {'ACT':>5} {'DVE':>5} {'DMA':>5} {'sec':>5}  note")
    errors, ladder = {}, {}
    for ident, use, kernel, values, metric, measured, note in cases():
        if a.only and ident not in a.only.split(","):
            continue
        path = kernel_path(kernel, a.ref)
        if path is None or not os.path.exists(path.split("::")[0]):
            print(f"{ident:6} {use:6} skipped: needs --ref with {kernel[4:].split('::')[0]}")
            continue
        d, why, seconds = run(a.nki, path, values, a.target, extra)
        if d is None:
            print(f"{ident:6} {use:6} failed: {why}")
            continue
        s = d["summary"]
        body = s["body_time_ns"] / 1e3
        offset = {"body": 0.0, "total": TOTAL_US, "ncl": NCL_US}[metric]
        error = 100 * ((body + offset) / float(measured) - 1)
        if use == "order":  # against the first row of the ladder
            first = ladder.setdefault(kernel, (body, float(measured)))
            error = 100 * (body / first[0] / (float(measured) / first[1]) - 1)
        errors.setdefault(use, []).append((abs(error), ident))
        share = {e["name"]: 100 * e["active_time_ns"] / s["body_time_ns"] for e in d["engine"]}
        dma = 100 * s["dma_active_time_ns"] / s["body_time_ns"]
        print(f"{ident:6} {use:6} {metric:6} {float(measured):10.2f} {body + offset:10.2f}"
              f" {error:+7.1f}% {body:10.2f} {offset:7.1f}  {share['Tensor']:5.1f}"
              f" {share['Scalar']:5.1f} {share['Vector']:5.1f} {dma:5.1f} {seconds:5.1f}  {note}")
        if a.machine:
            base, _, _ = run(a.nki, path, values, a.target, [])
            was = base["summary"]["body_time_ns"] / 1e3
            print(f"{'':6} changed from {was:.2f} to {body:.2f} us ({100 * (body / was - 1):+.2f} %)")
    for use, list_of in errors.items():
        ordered = sorted(list_of)
        print(f"{use}: median error {ordered[len(ordered) // 2][0]:.1f} %, worst"
              f" {ordered[-1][0]:.1f} % ({ordered[-1][1]})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
