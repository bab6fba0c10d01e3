"""What more processes, threads and samples cost: of each step the figures, and of each unit what it adds.

Variables choose a part of it: GROWTH_PART `live` or `recordings`, GROWTH_OF one of CROWDS, GROWTH_BY some of what is
done with recordings (`report,diff`), GROWTH_STEPS some of the steps (`10,1000`). GROWTH_FOLDER keeps recordings for
the next round.
"""

import os
import re
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from watch import Watched

# What is grown, and how far. A busy crowd keeps one CPU busy whatever its number: see crowd.c.
CROWDS = {
    "idle processes": (10, 100, 1_000, 10_000),
    "idle threads": (1_000, 10_000, 100_000),
    "busy processes": (10, 100, 1_000, 10_000),
    "busy threads": (1_000, 10_000, 100_000),
}
# What a crowd is compared with.
NOBODY = {"idle": 0, "busy": 1}
RECORDINGS = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
# What a step may cost more than the one before, a unit, before it counts as more than linear.
LINEAR = 1.25
# Bytes that a sample of a recording takes at most on disk, and in memory while the recording is made.
SAMPLE_ON_DISK, SAMPLE_IN_MEMORY = 12, 60
# Kernel memory of a task, with room.
TASK_BYTES = 48 << 10

# A share of a function, in the column of shares.
ROW = rb"[ H]\d{1,2}\.\d"


def chosen(steps):
    """All steps, or those that GROWTH_STEPS names."""
    wanted = os.environ.get("GROWTH_STEPS")
    return [step for step in steps if wanted is None or str(step) in wanted.split(",")]


def number_in(path):
    text = Path(path).read_text().strip()
    return 1 << 62 if text == "max" else int(text)


def memory_free():
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))


def fits(tasks):
    """Says why this machine has no room for so many tasks. None: it has."""
    if tasks * 1.2 > number_in("/proc/sys/kernel/threads-max"):
        return "kernel.threads-max is lower"
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kinds, group = line.split(":", 2)
        place = "/sys/fs/cgroup/pids" if "pids" in kinds else "/sys/fs/cgroup"
        bound = Path(place + group, "pids.max")
        if bound.exists() and number_in(bound) < tasks * 1.2:
            return f"{bound} is lower"
    if tasks * TASK_BYTES > memory_free() / 2:
        return "memory is short"
    return None


@contextmanager
def pids_for(tasks):
    """Raises the bound of pids while it is too low."""
    bound = Path("/proc/sys/kernel/pid_max")
    before = int(bound.read_text())
    wanted = tasks * 2 + before
    if tasks * 1.5 > before:
        bound.write_text(str(wanted))
    try:
        yield
    finally:
        if int(bound.read_text()) != before:
            bound.write_text(str(before))


def build(folder):
    program = Path(folder) / "crowd"
    subprocess.run(["cc", "-O2", "-pthread", "-fno-optimize-sibling-calls", Path(__file__).parent / "crowd.c", "-o",
                    program], check=True)
    return program


@contextmanager
def crowd(program, kind, how_many):
    """So many processes or threads, as long as it is needed."""
    if how_many == 0:
        yield
        return
    how, what = kind.split()
    with pids_for(how_many):
        started = subprocess.Popen([program, what, str(how_many), how], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        try:
            if started.stdout.readline() != b"ready\n":
                raise SystemExit(f"no crowd of {how_many} {kind}")
            yield
        finally:
            started.stdin.close()
            try:
                started.wait(60)
            except subprocess.TimeoutExpired:
                # The kernel ends the others with it.
                started.kill()
                started.wait()


def watch(command, terminal, begin, watched):
    """The figures of a program that follows the machine: its start, then a time of rest."""
    with Watched(command, terminal, PROFTOP_TRACE_START="1") as tool:
        time.sleep(begin)
        before, began = tool.look(), time.monotonic()
        time.sleep(watched)
        after, took = tool.look(), time.monotonic() - began
        if not tool.runs():
            raise SystemExit(f"{command} has ended: {tool.said()[-300:]}")
        values = {
            "start, CPU s": before.cpu,
            "CPU, s in 10 s": (after.cpu - before.cpu) * 10 / took,
            "wake-ups/s": (after.switches - before.switches) / took,
            "PSS, MB": tool.pss() / 1e6,
        }
        if terminal:
            tool.type("q")
            tool.wait()
            first = re.search(r"first samples after ([\d.]+) ms", tool.said())
            if first:
                values["first row, ms"] = float(first[1])
        return values


def crowds(commands, begin, watched, keep):
    """Each step after one without a crowd, as other programs of the machine come and go."""
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder)
        for kind, steps in CROWDS.items():
            if os.environ.get("GROWTH_OF", kind) != kind:
                continue
            rate = 99 if kind.startswith("idle") else 999
            for step in chosen(steps):
                if reason := fits(step):
                    print(f"not done, {step} {kind}: {reason}")
                    continue
                for how_many in (NOBODY[kind.split()[0]], step):
                    with crowd(program, kind, how_many):
                        for name, command, terminal in commands(rate):
                            values = watch(command, terminal, begin, watched)
                            keep(f"{kind}, {step}{'' if how_many == step else ' less'}", name, values)


def rss(pids):
    total = 0
    for pid in pids:
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return total * os.sysconf("SC_PAGESIZE")


def run(command, out):
    """CPU time and the most memory of a command with all its processes, or why it failed."""
    with Watched(command) as tool:
        most = 0
        while tool.runs():
            most = max(most, rss(tool.pids()))
            time.sleep(0.01)
        values = {"CPU, s": tool.look().cpu, "memory at most, MB": most / 1e6}
        if tool.process.returncode:
            tool.reader.join(2)
            return None, tool.said().strip()[-300:]
    if out:
        values["bytes written, MB"] = os.path.getsize(out) / 1e6
        os.unlink(out)
    return values, None


def opened(command, patience):
    """The same until the screen has the whole recording and rests, and when its first row came."""
    with Watched(command, terminal=True) as tool:
        most, rested, last = 0, 0, 0
        while tool.runs() and rested < 15 and time.monotonic() < tool.began + patience:
            time.sleep(0.02)
            most = max(most, rss(tool.pids()))
            cpu = tool.look().cpu
            # Some pieces of 20 ms without any work.
            rested, last = (rested + 1 if cpu - last < 0.002 and cpu > 0.02 else 0), cpu
        values = {"CPU, s": tool.look().cpu, "memory at most, MB": most / 1e6}
        if not tool.runs():
            return None, tool.said().strip()[-300:]
        if row := tool.when(ROW):
            values["first row, ms"] = row * 1e3
        values["last row, ms"] = tool.times[-1][0] * 1e3
        tool.type("q")
        tool.wait()
        return values, None


@contextmanager
def folder_for_recordings():
    """One that is removed, or GROWTH_FOLDER, which keeps what was made for the next round."""
    if kept := os.environ.get("GROWTH_FOLDER"):
        yield kept
        return
    with tempfile.TemporaryDirectory() as folder:
        yield folder


def made(repeat, base, path, samples, seed):
    """A recording of so many samples. None, with a sentence, if there is no room for it."""
    if os.path.exists(path):
        return path
    disk = os.statvfs(os.path.dirname(path))
    for there, of_each, what in ((disk.f_bavail * disk.f_frsize, SAMPLE_ON_DISK, "the disk"),
                                 (memory_free(), SAMPLE_IN_MEMORY, "memory")):
        if samples * of_each * 2 > there:
            print(f"not done, {samples} samples: {what} is short")
            return None
    subprocess.run([repeat, base, path + ".part", str(samples), str(seed)], check=True)
    os.rename(path + ".part", path)
    return path


def commands_on(folder, first, second):
    """What is done with recordings: its name, the command, and the file that it writes."""
    yield "report", ["report", first], None
    for kind, out in (("folded", "out.folded"), ("pprof", "out.pb.gz"), ("firefox", "out.json.gz")):
        yield kind, ["export", "-f", "--format", kind, first, f"{folder}/{out}"], f"{folder}/{out}"
    yield "diff", ["diff", first, second], None
    yield "open", ["open", first], None


def recordings(proftops, repeat, keep):
    """Recordings of more and more samples, made from one of this machine."""
    with folder_for_recordings() as folder:
        base = f"{folder}/base.pft"
        if not os.path.exists(base):
            subprocess.run([proftops[0][1], "record", "-F", "999", "-d", "20", "-o", base], check=True)
        for samples in chosen(RECORDINGS):
            paths = [made(repeat, base, f"{folder}/{which}-{samples}.pft", samples, seed)
                     for seed, which in enumerate(("first", "second"), 1)]
            if None in paths:
                continue
            for what, command, out in commands_on(folder, *paths):
                if what not in os.environ.get("GROWTH_BY", what).split(","):
                    continue
                for name, program in proftops:
                    whole = [program, *command]
                    values, error = opened(whole, 600) if what == "open" else run(whole, out)
                    if error:
                        print(f"{what} of {samples} samples by {name} failed: {error}")
                        continue
                    keep(f"{what}, {samples} samples", name, values)
            if "GROWTH_FOLDER" not in os.environ:
                for path in paths:
                    os.unlink(path)


def judged(rows):
    """Rows of (row, tool, what, value): of each step what each unit of it adds, and whether that grows.

    What a crowd adds is what there is more than without it; what samples add is what there is more than
    in the step before."""
    found = {}
    for row, tool, what, value in rows:
        kind, step = row.rsplit(", ", 1)
        number, _, kind_of = step.partition(" ")
        found.setdefault((kind, tool, what), {}).setdefault(int(number), {})[kind_of == "less"] = value
    for (kind, tool, what), steps in found.items():
        bases = [step[True] for step in steps.values() if True in step]
        # Noise is what the figure differs by without a crowd, and a part of it.
        noise = max(max(bases) - min(bases), 0.1 * max(bases)) if bases else 0
        last, before = None, (0, 0)
        # A run that was ended in between has only one of the two.
        measured = {number: step for number, step in steps.items() if False in step and (True in step or not bases)}
        for number, step in sorted(measured.items()):
            value, base = step[False], step.get(True)
            added, units = (value - base, number) if bases else (value - before[1], number - before[0])
            before = number, value
            is_told = added > max(noise, 0.05 if what.startswith("CPU") else 0)
            each = added / units
            marks = []
            if is_told and kind.startswith("idle"):
                marks.append("costs something")
            if is_told and last and each > LINEAR * last:
                marks.append(f"faster than linear: {each / last:.2f} times a unit")
            yield kind, number, tool, what, base, value, each, ", ".join(marks)
            last = each if is_told else None


def table(rows):
    print("| growing | step | tool | figure | without | with | a thousand add | |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for kind, number, tool, what, base, value, each, marks in judged(rows):
        base = "" if base is None else f"{base:.3g}"
        print(f"| {kind} | {number:,} | {tool} | {what} | {base} | {value:.3g} | {each * 1000:.2g} | {marks} |")
