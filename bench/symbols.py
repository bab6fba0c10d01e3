#!/usr/bin/env python3
"""Measures names and lines beside other symbolizers: see README.md.

    cargo build --release -p proftop
    (cd bench/symbols && cargo build --release)
    bench/symbols.py build FILE...      everything resolved ahead
    bench/symbols.py warm FILE...       look-ups a second, and the first answer
    bench/symbols.py recipe FILE...     crash logs, from tables and on demand
    bench/symbols.py commands FILE...   the same by whole commands

Jobs of different tools run in turn, ROUNDS times; figures are medians. But for
`wall` all times are CPU times: the machine may be busy with other things.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target")) / "release"
BENCH_TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE / "symbols/target")) / "release"
PROFTOP, BENCH = str(TARGET / "proftop"), str(BENCH_TARGET / "symbols-bench")
GSYMUTIL = os.environ.get("GSYMUTIL", "llvm-gsymutil")
SYMBOLIZER = os.environ.get("SYMBOLIZER", "llvm-symbolizer")
ROUNDS = int(os.environ.get("ROUNDS", 5))
# So many that the p99 of the logs is not the worst of them.
LOGS, FRAMES = int(os.environ.get("LOGS", 400)), 24


class Job:
    """One process: what it printed, and what it took, all its threads together."""

    def __init__(self, command, text=""):
        with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as out:
            given.write(text)
            given.seek(0)
            began = time.perf_counter()
            process = subprocess.Popen(list(map(str, command)), stdin=given, stdout=out, stderr=subprocess.PIPE,
                                       text=True)
            self.said = process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            self.wall = time.perf_counter() - began
            process.returncode = status
            if status:
                raise SystemExit(f"{command}: {self.said}")
            self.cpu, self.rss = used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3
            out.seek(0)
            self.out = out.read()


def in_turn(jobs):
    """name -> the jobs of all rounds."""
    done = {name: [] for name in jobs}
    for _ in range(ROUNDS):
        for name, start in jobs.items():
            done[name].append(start())
    return done


def median(values):
    return statistics.median(values)


def percentile(values, percent):
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def sections(file):
    """Megabytes of .debug_info, and of .debug_line."""
    sizes = {"debug_info": 0, "debug_line": 0}
    for line in subprocess.run(["readelf", "-SW", file], capture_output=True, text=True).stdout.splitlines():
        fields = line.replace("[ ", "[").split()
        if len(fields) > 5 and fields[1].lstrip(".") in sizes:
            sizes[fields[1].lstrip(".")] = int(fields[5], 16) / 1e6
    return sizes["debug_info"], sizes["debug_line"]


def build(files):
    with tempfile.TemporaryDirectory() as directory:
        for file in files:
            out = f"{directory}/out"
            jobs = {
                "ours, 2 threads": lambda: Job([BENCH, "build", "ours", file, out]),
                "ours, 1 thread": lambda: Job([BENCH, "build", "ours1", file, out]),
                "SymCache": lambda: Job([BENCH, "build", "symcache", file, out]),
                "gsymutil": lambda: Job([GSYMUTIL, f"--convert={file}", f"--out-file={out}", "--num-threads=2"]),
            }
            info, line = sections(file)
            done = in_turn(jobs)
            ours = median([job.cpu for job in done["ours, 2 threads"]])
            one = median([job.wall for job in done["ours, 1 thread"]])
            print(f"{Path(file).name}: .debug_info {info:.1f} MB, .debug_line {line:.1f} MB")
            for name, results in done.items():
                cpu, wall = median([job.cpu for job in results]), median([job.wall for job in results])
                rss = median([job.rss for job in results])
                print(f"  {name:16} CPU {cpu:.3f} s ({cpu / ours:.2f}x)  wall {wall:.3f} s  RSS {rss:.0f} MB "
                      f"({rss / info:.1f}x of .debug_info)  {(info + line) / cpu:.0f} MB/s of info+line per core")
            two = median([job.wall for job in done["ours, 2 threads"]])
            print(f"  parallel efficiency of two threads: {one / two / 2:.2f}")


def warm(files):
    with tempfile.TemporaryDirectory() as directory:
        for file in files:
            addresses = "\n".join(addresses_of(file, 20_000))
            tables = tables_of([file], directory)
            jobs = {tool: (lambda tool=tool: Job([BENCH, "warm", tool, file, *tables(tool, file)], addresses))
                    for tool in ("ours", "symcache", "blazesym", "addr2line")}
            print(Path(file).name)
            few = "\n".join(addresses.splitlines()[:50])
            for tool, results in in_turn(jobs).items():
                said = [list(map(float, job.out.split())) for job in results]
                first = Job([BENCH, "first", tool, file, *tables(tool, file)], few)
                times = [float(line) for line in first.out.split()]
                print(f"  {tool:10} {median([s[0] for s in said]) / 1e6:6.2f} M/s  {said[0][1]:.0f} frames, "
                      f"{said[0][2]:.0f} with a line; first answer {median(times):.0f} us, p99 "
                      f"{percentile(times, 99):.0f} us")


def tables_of(files, directory):
    for file in files:
        for tool in ("ours", "symcache"):
            Job([BENCH, "build", tool, file, table(tool, file, directory)])
    return lambda tool, file: [table(tool, file, directory)] if tool in ("ours", "symcache") else []


def table(tool, file, directory):
    return f"{directory}/{file.replace('/', '_')}.{tool}"


def addresses_of(file, count):
    """Spread over all functions, the larger the more; the same each time."""
    functions = []
    for line in subprocess.run(["nm", "-S", "--defined-only", file], capture_output=True, text=True).stdout.splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[2] in "tTwWi" and int(fields[1], 16):
            functions.append((int(fields[0], 16), int(fields[1], 16)))
    chance = random.Random(5)
    chosen = chance.choices(functions, [size for _, size in functions], k=count)
    return [hex(start + chance.randrange(size)) for start, size in chosen]


def crash_logs(files):
    """Stacks over one to four files, some of which crash much more than others."""
    chance = random.Random(4)
    addresses = {file: addresses_of(file, 4000) for file in files}
    weights = [1 / rank for rank in range(1, len(files) + 1)]
    logs = []
    for _ in range(LOGS):
        modules = chance.choices(files, weights, k=chance.randint(1, 4))
        frames = [chance.choice(modules) for _ in range(FRAMES)]
        logs.append([(file, chance.choice(addresses[file])) for file in frames])
    return logs


def compare(times, base):
    """Of each tool the rounds' means, p99 and maxima of a log, the first two beside those of the first tool."""
    means = {tool: [statistics.mean(round) for round in rounds] for tool, rounds in times.items()}
    tails = {tool: [percentile(round, 99) for round in rounds] for tool, rounds in times.items()}
    for tool in times:
        mean = median([other / own for other, own in zip(means[tool], means[base])])
        tail = median([other / own for other, own in zip(tails[tool], tails[base])])
        worst = median([max(round) for round in times[tool]])
        yield tool, median(means[tool]), mean, median(tails[tool]), tail, worst


def recipe(files):
    with tempfile.TemporaryDirectory() as directory:
        tables_of(files, directory)
        logs = crash_logs(files)
        text = "\n\n".join("\n".join(f"{file} {addr}" for file, addr in log) for log in logs)
        for mode in ("anew", "kept"):
            jobs = {tool: (lambda tool=tool: Job([BENCH, "stream", tool, mode, directory], text))
                    for tool in ("ours", "symcache", "demand", "addr2line", "blazesym")}
            done = in_turn(jobs)
            times = {tool: [[float(line) for line in job.out.split()] for job in jobs] for tool, jobs in done.items()}
            print(f"{len(logs)} logs of {FRAMES} addresses in {len(files)} files, files opened "
                  f"{'for each log' if mode == 'anew' else 'once'}:")
            for tool, mean, more, tail, later, worst in compare(times, "ours"):
                said = done[tool][0].said.split()
                print(f"  {tool:10} mean {mean:9.0f} us ({more:7.1f}x)  p99 {tail:9.0f} us ({later:7.1f}x)  "
                      f"max {worst:9.0f} us  RSS {median([job.rss for job in done[tool]]):5.0f} MB  {said[0]} frames, {said[1]} with a line")


def commands(files):
    """A command a log, as somebody with a crash log at hand would."""
    with tempfile.TemporaryDirectory() as directory:
        Job([PROFTOP, "symbolize", "--build-cache", directory, *files])
        logs = crash_logs(files)
        print(f"{len(logs)} logs of {FRAMES} addresses in {len(files)} files, a command each; tables: "
              f"{sum(f.stat().st_size for f in Path(directory).iterdir()) / 1e6:.0f} MB, files: "
              f"{sum(os.path.getsize(f) for f in files) / 1e6:.0f} MB")
        times, memory = {"proftop": [], "llvm-symbolizer": []}, {"proftop": [], "llvm-symbolizer": []}
        for _ in range(ROUNDS):
            for tool in times:
                times[tool].append([])
            for log in logs:
                text = "".join(f"    #{n} {addr} ({file}+{addr})\n" for n, (file, addr) in enumerate(log))
                plain = "".join(f"{file} {addr}\n" for file, addr in log)
                jobs = {"proftop": Job([PROFTOP, "symbolize", "--cache", directory], text),
                        "llvm-symbolizer": Job([SYMBOLIZER, "--inlines"], plain)}
                for tool, job in jobs.items():
                    times[tool][-1].append(job.cpu * 1e6)
                    memory[tool].append(job.rss)
        for tool, mean, more, tail, later, worst in compare(times, "proftop"):
            print(f"  {tool:16} mean {mean / 1e3:7.1f} ms ({more:6.1f}x)  p99 {tail / 1e3:7.1f} ms ({later:6.1f}x)  "
                  f"max {worst / 1e3:7.1f} ms  RSS {median(memory[tool]):4.0f} MB, at most {max(memory[tool]):4.0f} MB")


if __name__ == "__main__":
    part = {"build": build, "warm": warm, "recipe": recipe, "commands": commands}[sys.argv[1]]
    part([str(Path(file).resolve()) for file in sys.argv[2:]])
