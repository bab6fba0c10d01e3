#!/usr/bin/env python3
"""What proftop costs beside its peers, row by row, on the same loads: see README.md.

    cargo build --release -p proftop --bins --examples
    sudo bench/lean.py                    every part, some twenty-five minutes
    sudo bench/lean.py run busy start     these parts, one round of each
    sudo bench/lean.py table              what the rounds so far say
    sudo bench/lean.py run growth         more and more processes, threads and samples: half an hour
    sudo bench/lean.py table growth       what that says, step by step

Each round runs all tools one after the other, beginning with another one each time, so that what
the machine does meanwhile comes to all of them. A line of each run goes to RESULTS (lean.jsonl in
the target directory), so that rounds can be taken whenever the machine has time. The table has
medians with the least and the most, and the median of the ratios to proftop within a round.

BEFORE=/path/to/an/older/proftop is measured beside it. Peers are taken from PATH (py-spy also from
PYSPY), and one that is not there is named.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "lean"), str(HERE)]
import growth as grown  # noqa: E402
import loads  # noqa: E402
import peers  # noqa: E402
import stacks  # noqa: E402
import symbolizers  # noqa: E402
from watch import Watched  # noqa: E402

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
PROFTOP = os.environ.get("PROFTOP", str(TARGET / "release/proftop"))
RESULTS = Path(os.environ.get("RESULTS", TARGET / "lean.jsonl"))
ROUNDS = int(os.environ.get("ROUNDS", 5))
# Before a tool is looked at it may take this long to begin; then it is watched as long.
BEGIN, WATCHED = int(os.environ.get("BEGIN", 4)), int(os.environ.get("WATCHED", 10))
BPFTRACE_COUNT = "profile:hz:{} {{ @[kstack, ustack, comm] = count(); }}"
OURS = "proftop"


def proftops():
    """This program, and an earlier one if there is one to compare with."""
    yield OURS, PROFTOP
    if before := os.environ.get("BEFORE"):
        yield "proftop before", before


def peer(name):
    return shutil.which(name)


def live_tools(rate):
    """Those that follow the whole machine: name, command, whether it needs a terminal."""
    for name, program in proftops():
        yield name, [program, "-b", "--format", "json", "-d", 1, "-F", rate], False
        yield f"{name}, screen", [program, "-F", rate], True
    if perf := peer("perf"):
        yield "perf top", [perf, "top", "-F", rate, "-g", "--stdio"], True
    if bpftrace := peer("bpftrace"):
        yield "bpftrace", [bpftrace, "-e", BPFTRACE_COUNT.format(rate)], False
    if lightswitch := peer("lightswitch"):
        # It takes only primes.
        rate = {99: 101, 999: 997}[rate]
        yield "lightswitch", [lightswitch, "--sample-freq", rate, "--duration", 60, "--sender", "none"], False
    if probee := peer("probee"):
        yield "profile-bee", [probee, "--dwarf", "true", "-f", rate, "-t", 60_000, "-o", "/dev/null.folded"], False


def turned(tools, number):
    """The same tools, beginning with another one in each round."""
    tools = list(tools)
    at = number % len(tools)
    return tools[at:] + tools[:at]


def live(part, rate, number, load):
    with load():
        watch(part, f"{rate} Hz", turned(live_tools(rate), number))


def watch(part, row, tools):
    """Runs each tool for a while, and keeps what it has used."""
    for name, command, terminal in tools:
        with Watched(command, terminal) as tool:
            time.sleep(BEGIN)
            before, began = tool.look(), time.monotonic()
            time.sleep(WATCHED)
            after, took = tool.look(), time.monotonic() - began
            if not tool.runs():
                print(f"{name} has ended: {tool.said()[-300:]}")
                continue
            keep(part, row, name, {
                "CPU, s in 10 s": (after.cpu - before.cpu) * 10 / took,
                "wake-ups/s": (after.switches - before.switches) / took,
                "PSS, MB": tool.pss() / 1e6,
            })


def busy(number):
    """own CPU, wake-ups and memory beside python, make and short processes"""
    for rate in (99, 999):
        live("busy", rate, number, loads.mixed)


def idle(number):
    """the same on a machine that does nothing else"""
    live("idle", 99, number, loads.nothing)


def one(number):
    """own CPU while one Python program is looked at, at 99 Hz: with those that cannot follow the whole machine"""
    with tempfile.TemporaryDirectory() as folder, loads.python_alone() as pid:
        tools = [(name, [program, "-b", "--format", "json", "-d", 1, "-F", 99, "-p", pid], False)
                 for name, program in proftops()]
        if perf := peer("perf"):
            tools.append(("perf top", [perf, "top", "-F", 99, "-g", "--stdio", "-p", pid], True))
        if spy := os.environ.get("PYSPY") or peer("py-spy"):
            tools.append(("py-spy", [spy, "record", "-p", pid, "-r", 99, "-d", 60, "-f", "raw",
                                     "-o", f"{folder}/spy"], False))
        if samply := peer("samply"):
            tools.append(("samply", [samply, "record", "-p", pid, "--rate", 99, "--duration", 60, "--save-only",
                                     "-o", f"{folder}/samply"], False))
        watch("one", "one Python program, 99 Hz", turned(tools, number))


def bpf(number):
    """the BPF program's time for a sample, by the kernel's own count, at 997 Hz"""
    for name, load in loads.DEEP_AND_FLAT.items():
        with load():
            for tool, command in turned(peers.commands(), number):
                if measured := peers.cost(command):
                    keep("bpf", name, tool, {"ns a sample": measured[0]})


def whole(number):
    """how many stacks are whole, and how many of their frames have a name, of 8 s at 99 Hz"""
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/out"
        for row, load in loads.DEEP_AND_FLAT.items():
            with load():
                for name, command, read in turned(recorders(out), number):
                    # New programs have been seen, and interpreters have compiled what is hot.
                    time.sleep(2)
                    subprocess.run(list(map(str, command)), stdout=open(f"{out}.said", "w"), stderr=subprocess.DEVNULL)
                    keep("whole", row, name, stacks.count(read(out)).values())
                    for left in Path(folder).glob("out*"):
                        left.unlink()


def recorders(out):
    """Those that record the whole machine for 8 s: name, command, and what reads the stacks that it has written."""
    for name, program in proftops():
        def read(out, program=program):
            export = [program, "export", "--format", "folded", out, "-"]
            folded = subprocess.run(export, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            return stacks.of_folded(folded.stdout, "proftop")
        yield name, [program, "record", "-F", 99, "-d", "8s", "-o", out], read
    if perf := peer("perf"):
        for how in ("fp", "dwarf"):
            yield f"perf record, {how}", [perf, "record", "-q", "-a", "-F", 99, "-e", "cpu-clock", "--call-graph", how,
                                          "-o", out, "--", "sleep", 8], lambda out: stacks.of_perf(out, "perf")
    if bpftrace := peer("bpftrace"):
        count = "profile:hz:99 { @[comm, ustack(perf)] = count(); }"
        yield "bpftrace", ["timeout", "-s", "INT", 9, bpftrace, "-e", count], lambda out: stacks.of_bpftrace(
            Path(f"{out}.said").read_text(errors="replace"), "bpftrace")
    if probee := peer("probee"):
        yield "profile-bee", [probee, "--dwarf", "true", "-f", 99, "-t", 8_000, "-o", f"{out}.folded"], lambda out: stacks.of_folded(
            Path(f"{out}.folded").read_text(errors="replace"), "probee")


def record(number):
    """recording 20 s at 999 Hz and a report of it"""
    with tempfile.TemporaryDirectory() as folder, loads.mixed():
        out = f"{folder}/out"
        tools = {}
        for name, program in proftops():
            tools[f"{name} record"] = ([program, "record", "-F", 999, "-o", out, "--duration", 20],
                                       [program, "report", out])
        if perf := peer("perf"):
            for how in ("fp", "dwarf"):
                tools[f"perf record, {how}"] = (
                    [perf, "record", "-q", "-a", "-F", 999, "-e", "cpu-clock", "--call-graph", how, "-o", out,
                     "--", "sleep", 20],
                    [perf, "report", "-i", out, "--stdio", "--no-children"])
        for name, (command, report) in turned(tools.items(), number):
            with Watched(command) as tool:
                most = 0
                while tool.runs():
                    time.sleep(0.5)
                    most = max(most, tool.pss())
                values = {"CPU, s": tool.look().cpu, "PSS at most, MB": most / 1e6}
            if not os.path.exists(out):
                print(f"{name} wrote nothing: {tool.said()[-300:]}")
                continue
            values["bytes written, MB"] = os.path.getsize(out) / 1e6
            values["report, CPU s"] = symbolizers.run(report).cpu
            keep("record", "20 s at 999 Hz", name, values)
            os.unlink(out)


def start(number):
    """what is seen first, and when, with one CPU busy"""
    with loads.burning(1):
        for name, program in turned(proftops(), number):
            with Watched([program, "-F", 99], terminal=True, PROFTOP_TRACE_START="1") as tool:
                time.sleep(3)
                tool.type("q")
                tool.wait()
            found = dict(re.findall(r"first (\w+) after ([\d.]+) ms", tool.said()))
            keep("start", "ms until", name, {
                "first paint": float(found["paint"]), "first samples": float(found["samples"]),
                "first name": float(found["names"])})
        if bpftrace := peer("bpftrace"):
            ms = until([bpftrace, "-e", 'profile:hz:99 { printf("%d%%\\n%s\\n", pid, ustack); }'], rb"%")
            keep("start", "ms until", "bpftrace, printf", {"first samples": ms})
        if perf := peer("perf"):
            ms = until([perf, "top", "--stdio", "-F", 99], rb"\d%")
            keep("start", "ms until", "perf top", {"first samples": ms, "first name": ms})


def until(command, wanted):
    """ms from the start of a command until something is in what it prints."""
    with Watched(command, terminal=True) as tool:
        for _ in range(10_000):
            if found := tool.when(wanted):
                return found * 1e3
            time.sleep(0.001)
    raise SystemExit(f"{command} never printed {wanted}")


def addresses(number):
    """one address by a command of its own, and 5,000 of one file"""
    for file in symbolizers.files(TARGET):
        for count in (1, 5000):
            given = symbolizers.addresses(file, count, seed=number)
            if not given:
                continue
            row = f"{count} of {file.name}"
            for name, ask in turned(symbolizers.tools(proftops(), file), number):
                done = ask(given)
                keep("addresses", row, name, {"CPU, ms": done.cpu * 1e3, "time, ms": done.wall * 1e3})


def slow(number):
    """how much longer a Python program's own CPU time is, at 999 Hz, than beside nothing"""
    tools = [(name, command, terminal) for name, command, terminal in live_tools(999) if "screen" not in name]
    if perf := peer("perf"):
        tools.append(("perf record, fp", [perf, "record", "-q", "-a", "-F", 999, "-e", "cpu-clock", "-g",
                                          "-o", "/dev/null"], False))
    tools.append(("nothing", ["sleep", 60], False))
    floor = loads.work()
    for name, command, terminal in turned(tools, number):
        with Watched(command, terminal):
            time.sleep(3)
            took = loads.work()
        keep("slow", "python", name, {"slower, %": 100 * (took / floor - 1)})
        floor = loads.work()


def growth(number):
    """what more processes, threads and samples cost; it takes long, so that it has to be named"""
    def keep_growth(row, tool, values):
        keep("growth", row, tool, values)

    def commands(rate):
        return [each for each in live_tools(rate) if each[0].startswith(OURS)]

    part = os.environ.get("GROWTH_PART", "")
    if part in ("", "live"):
        grown.crowds(commands, BEGIN, WATCHED, keep_growth)
    if part in ("", "recordings"):
        repeat = os.environ.get("REPEAT", TARGET / "release/examples/repeat")
        grown.recordings(list(proftops()), repeat, keep_growth)
    growth_table()


def growth_table():
    """What each step costs, in the median of rounds, and each unit of it."""
    found = {}
    for line in map(json.loads, RESULTS.read_text().splitlines()):
        if line["part"] == "growth":
            for what, value in line["values"].items():
                found.setdefault((line["row"], line["tool"], what), []).append(value)
    grown.table((*key, statistics.median(values)) for key, values in found.items())


def keep(part, row, tool, values):
    line = {"round": ROUND, "part": part, "row": row, "tool": tool, "values": values}
    with RESULTS.open("a") as results:
        print(json.dumps(line), file=results)
    said = ", ".join(f"{what} {value:.3g}" for what, value in values.items())
    print(f"{part} {row}, {tool}: {said}", flush=True)


def table():
    """Medians (least to most), and how many times proftop's in the same round."""
    found = {}
    for line in map(json.loads, RESULTS.read_text().splitlines()):
        # Steps are no rows to compare: `table growth` prints them.
        if line["part"] == "growth":
            continue
        for what, value in line["values"].items():
            tools = found.setdefault((line["part"], line["row"], what), {})
            tools.setdefault(line["tool"], {})[line["round"]] = value
    print("| part | figure | tool | median (least to most) | times proftop's | rounds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (part, row, what), tools in found.items():
        # Recording has a longer name.
        name = min((name for name in tools if name.startswith(OURS)), key=len, default="")
        ours = tools.get(name, {})
        for tool, rounds in tools.items():
            values = sorted(rounds.values())
            ratios = [value / ours[at] for at, value in rounds.items() if ours.get(at)]
            times = f"{statistics.median(ratios):.2f}" if ratios else ""
            if part == "slow":
                # A few percent beside noise: what counts is who is slower within a round.
                more = [value > ours[at] for at, value in rounds.items() if at in ours]
                times = f"more in {sum(more)} of {len(more)}"
            print(f"| {part}, {row} | {what} | {tool} | {statistics.median(values):.3g} "
                  f"({values[0]:.3g} to {values[-1]:.3g}) | {times} | {len(values)} |")


USUAL = (busy, idle, one, bpf, whole, record, start, addresses, slow)
PARTS = {each.__name__: each for each in (*USUAL, growth)}


def say_who_is_missing():
    wanted = ["perf", "bpftrace", "lightswitch", "probee", "samply", "py-spy", "blazecli", "addr2line", *symbolizers.LLVM]
    if missing := [name for name in wanted if not peer(name)]:
        print(f"not here: {', '.join(missing)}")


def main():
    global ROUND
    asked = sys.argv[1:]
    if asked == ["table"]:
        return table()
    if asked == ["table", "growth"]:
        return growth_table()
    once = asked[:1] == ["run"]
    parts = [PARTS[name] for name in (asked[1:] if once else asked)] or list(USUAL)
    say_who_is_missing()
    for _ in range(1 if once else ROUNDS):
        # A number that no round before had.
        ROUND = time.time_ns() // 1_000_000_000
        for each in parts:
            each(ROUND)
    if not once:
        table()


if __name__ == "__main__":
    main()
