#!/usr/bin/env python3
"""What a sample costs in the kernel, beside other profilers: see README.md.

    cargo build --release -p proftop
    sudo bench/peers.py

The kernel's own count of BPF programs' time (bpf_stats_enabled), each profiler
in its turn over the same programs on every CPU. `probee` (profile-bee),
`lightswitch` and `bpftrace` are taken from PATH, where they are, and so is what the programs need.
BEFORE=/path/to/an/older/proftop is measured as well.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "lean"))
import loads  # noqa: E402

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parent.parent / "target"))
PROFTOP = os.environ.get("PROFTOP", str(TARGET / "release/proftop"))
STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")
# lightswitch takes only primes.
RATE = 997
WARM_UP, MEASURED = int(os.environ.get("WARM_UP", 6)), int(os.environ.get("MEASURED", 6))


def commands():
    ours = {"proftop": PROFTOP, "proftop before": os.environ.get("BEFORE")}
    for name, program in ours.items():
        if program:
            yield name, [program, "-b", "-F", RATE, "-d", 1, "--format", "json"]
    if probee := shutil.which("probee"):
        yield "probee --dwarf", [probee, "--dwarf", "true", "-f", RATE, "-t", 60_000, "-o", "/dev/null.folded"]
        yield "probee", [probee, "--dwarf", "false", "-f", RATE, "-t", 60_000, "-o", "/dev/null.folded"]
    if lightswitch := shutil.which("lightswitch"):
        yield "lightswitch", [lightswitch, "--sample-freq", RATE, "--duration", 60, "--sender", "none"]
    if bpftrace := shutil.which("bpftrace"):
        yield "bpftrace, frame pointers", [bpftrace, "-e", f"profile:hz:{RATE} {{ @[kstack, ustack] = count(); }}"]


def programs():
    """Run time and runs of the loaded programs that sample, by number."""
    shown = json.loads(subprocess.check_output(["bpftool", "-j", "prog", "show"], text=True))
    return {each["id"]: (each.get("run_time_ns", 0), each.get("run_cnt", 0))
            for each in shown if each["type"] == "perf_event"}


def cost(command):
    """ns a sample between two looks, and frames a sample where the tool says it."""
    STATISTICS.write_text("1")
    others = programs().keys()
    tool = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    os.set_blocking(tool.stdout.fileno(), False)
    try:
        time.sleep(WARM_UP)
        before = programs()
        time.sleep(MEASURED)
        after = programs()
        if tool.poll() is not None:
            return None
    finally:
        STATISTICS.write_text("0")
        tool.terminate()
        said = tool.communicate()[0]
    own = [program for program in after if program not in others]
    ns = sum(after[program][0] - before.get(program, (0, 0))[0] for program in own)
    runs = sum(after[program][1] - before.get(program, (0, 0))[1] for program in own)
    return (ns / runs, runs, frames(said)) if runs else None


def frames(said):
    """Frames of a sample in proftop's last whole report."""
    reports = [json.loads(line) for line in said.splitlines() if line.startswith("{") and line.endswith("}")]
    return reports[-1]["frames"] / reports[-1]["samples"] if reports else None


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for name, load in loads.DEEP_AND_FLAT.items():
        found = {tool: [] for tool, _ in commands()}
        with load():
            for _ in range(rounds):
                for tool, command in commands():
                    if measured := cost(command):
                        found[tool].append(measured)
        for tool, measured in found.items():
            if not measured:
                print(f"{name}, {tool}: no sample")
                continue
            costs = sorted(ns for ns, _, _ in measured)
            deep = [f for _, _, f in measured if f]
            print(f"{name}, {tool}: {statistics.median(costs):.0f} ns a sample, median of "
                  f"{', '.join(f'{ns:.0f}' for ns in costs)}"
                  + (f"; {statistics.median(deep):.1f} frames" if deep else ""), flush=True)


if __name__ == "__main__":
    main()
