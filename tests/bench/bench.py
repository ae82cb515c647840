#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""The comparison bench: boots a machine whose clock counts instructions, runs
every system over the same link, prints a table (Documentation/performance.md).

usage: bench.py [--out DIR] [--repeats N] [--quick [--record]]

Results go to DIR: results.jsonl (every repeat), table.md, *.svg, and the
raw counts.  --quick measures a few cases and compares them with baseline.json:
exit 1 when one needs over 5 % more instructions; --record writes that file.
"""

import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
REPO = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import cases                                    # noqa: E402
import charts                                   # noqa: E402
import table                                    # noqa: E402
from counts import Symbols, read_counts         # noqa: E402

BASELINE = os.path.join(HERE, "baseline.json")
BUILD = os.path.join(REPO, "build/bench")
# Over so much more than the baseline the quick bench fails.
LIMIT = 0.05
# Kernel arguments that make runs alike
ALIKE = ["nokaslr", "norandmaps"]


class BenchError(Exception):
    """The bench cannot run, or a measurement failed; the text says what."""


def call(*args):
    """Output of a command."""
    return subprocess.run(args, cwd=REPO, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def describe():
    """What was measured: the first line of results.jsonl."""
    release = call("sh", "-c", "REPO=.; . scripts/env.sh; stock_release")
    dirty = call("git", "status", "--porcelain", "--untracked-files=no")
    return {"commit": call("git", "rev-parse", "HEAD") +
                      (" and changes" if dirty else ""),
            "kernel": release, "device": "rxe over veth",
            "clock": "instructions (icount, 1 ns each)",
            "qemu": call("qemu-system-x86_64", "--version").split("\n")[0]}


def run_machine(lines, name, cpus, timeout):
    """Boot, run a plan. Returns {number: result} of what it printed."""
    share = os.path.join(BUILD, "share")
    os.makedirs(share, exist_ok=True)
    with open(os.path.join(share, "plan"), "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
    counts = os.path.join(BUILD, f"counts-{name}")
    plugin = f"{BUILD}/counter.so,out={counts}"
    args = [os.path.join(REPO, "tests/vm/vm"), "run", "--smp", str(cpus),
            "--plugin", plugin, "--share", share, "--timeout", str(timeout)]
    # The kernel does not start a second CPU under icount.
    if cpus == 1:
        args += ["--icount"]
    for word in ALIKE:
        args += ["--append", word]
    args += ["--", f"{HERE}/guest.sh /mnt/share/plan"]
    results = {}
    with subprocess.Popen(args, stdout=subprocess.PIPE, text=True) as proc:
        for line in proc.stdout:
            if line.startswith("{"):
                result = json.loads(line)
                results[result["number"]] = result
            else:
                print(line, end="", file=sys.stderr)
    # 1: some lines of the plan failed, and are told as not measured
    if proc.returncode not in (0, 1):
        print(f"!!! the machine failed (exit code {proc.returncode}), what it "
              "measured counts", file=sys.stderr)
    if not results:
        raise BenchError("nothing was measured")
    symbols = Symbols(os.path.join(share, "kallsyms"))
    return results, read_counts(counts, symbols)


def join(numbers, results, counted):
    """One record for each repeat; those of the AEADs print nothing."""
    records, missing = [], []
    for number, case in numbers.items():
        result = results.get(number, {})
        if number not in counted or not (result or case.system == "aead"):
            missing.append(case.key)
            continue
        count = counted[number]
        record = {"case": case.key, "system": case.system, "work": case.work,
                  "mtu": case.mtu, "offload": case.offload, **case.args,
                  **{k: v for k, v in result.items() if k != "number"},
                  "insns": count.total, "groups": count.groups}
        if len(count.cpus) > 1 and count.cpus[1]:
            record["cpus"] = count.cpus
        records.append(record)
    return records, missing


def measure(chosen, name, opts, cpus=1):
    """Run cases. Returns (records, names of those that failed)."""
    lines, numbers = cases.plan(chosen, opts.repeats)
    results, counted = run_machine(lines, name, cpus, opts.timeout)
    records, missing = join(numbers, results, counted)
    for key in sorted(set(missing)):
        print(f"!!! NOT MEASURED: {key}", file=sys.stderr)
    return records, missing, numbers, counted


def write_results(opts, records):
    """All repeats, machine-readable."""
    path = os.path.join(opts.out, "results.jsonl")
    with open(path, "w", encoding="ascii") as file:
        for record in [opts.about] + records:
            file.write(json.dumps(record) + "\n")
    print(f"# every repeat: {path}")


def quick(opts):
    """make bench-quick: returns the exit code."""
    records, missing, _, _ = measure(list(cases.quick()), "quick", opts)
    write_results(opts, records)
    figures = table.figures(records)
    if opts.record:
        with open(BASELINE, "w", encoding="ascii") as file:
            json.dump(figures, file, indent=1, sort_keys=True)
            file.write("\n")
        print(f"# recorded in {BASELINE}")
        return 1 if missing else 0
    if not os.path.exists(BASELINE):
        raise BenchError("no baseline.json: make bench-quick RECORD=1")
    with open(BASELINE, encoding="ascii") as file:
        known = json.load(file)
    bad = table.print_comparison(figures, known, LIMIT)
    return 1 if bad or missing else 0


def full(opts):
    """make bench: returns the exit code."""
    records, missing, numbers, counted = measure(list(cases.full()), "full",
                                                 opts)
    split, lost = [], ["all of the sides"]
    try:
        split, lost, _, _ = measure(list(cases.split()), "split", opts, cpus=2)
    except BenchError as error:
        print(f"!!! NOT MEASURED: sender and receiver apart: {error}",
              file=sys.stderr)
    for record in split:
        record["case"] += " split"
    write_results(opts, records + split)
    text = table.full(records, split, table.costs(numbers, counted))
    with open(os.path.join(opts.out, "table.md"), "w",
              encoding="ascii") as file:
        file.write(text)
    print(text)
    for path in charts.draw(records, opts.out):
        print(f"# chart: {path}")
    return 1 if missing or lost else 0


def main():
    """Returns the exit code."""
    top = argparse.ArgumentParser(description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--out", default=os.path.join(BUILD, "out"))
    top.add_argument("--repeats", type=int, default=3)
    top.add_argument("--timeout", type=int, default=1500,
                     help="seconds for each machine")
    top.add_argument("--quick", action="store_true")
    top.add_argument("--record", action="store_true")
    opts = top.parse_args()
    os.makedirs(opts.out, exist_ok=True)
    opts.about = describe()
    try:
        return quick(opts) if opts.quick else full(opts)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
