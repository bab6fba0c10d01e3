#!/usr/bin/env python3
"""Functions of Python, on servers and work as people run them: see README.md.

    cargo build --release -p proftop
    sudo bench/python.py ENVIRONMENTS loads        samples with all functions
    sudo bench/python.py ENVIRONMENTS cost         own CPU, and shares, beside other profilers
    sudo bench/python.py ENVIRONMENTS first        the first name

ENVIRONMENTS is a folder of virtual environments, one for each version, with aiohttp, django,
gunicorn, numpy, pandas, pytest, lxml and cryptography, and py-spy in one of them. A load whose
packages are missing is left out, and said; so is the profiler that comes with Python from 3.15 on.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "lean"))
import watch  # noqa: E402

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
PROFTOP = os.environ.get("PROFTOP", str(TARGET / "release/proftop"))
FOLDER = HERE / "python"
RATE = 99
PROCESSES, ROUNDS, SECONDS = 8, 5, 10


# Of each load: what has to be importable, and the command; each has a port of its own.
LOADS = {
    "aiohttp server": ("aiohttp", "python aiohttp_server.py PORT"),
    "asyncio server": ("asyncio", "python asyncio_server.py PORT"),
    "django, gunicorn, 8 workers": (
        "django, gunicorn", "gunicorn -w 8 -b 127.0.0.1:PORT --log-level error shop_site:application"),
    "numpy, pandas": ("numpy, pandas", "python pandas_work.py"),
    "pytest": ("pytest", "python -m pytest -q -p no:cacheprovider tests_suite.py"),
    "lxml, cryptography": ("lxml, cryptography", "python extensions.py"),
}
LOAD_SECONDS = int(os.environ.get("LOAD_SECONDS", 20))


# Asks the site until it is stopped; its server may not be there yet.
CLIENT = """
import http.client, threading
def ask():
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", PORT)
            connection.request("GET", "/cart/7")
            connection.getresponse().read()
        except OSError:
            pass
for _ in range(4): threading.Thread(target=ask).start()
"""


def start(command, **more):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(list(map(str, command)), cwd=FOLDER, start_new_session=True, **quiet | more)


def stop(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def reports(*arguments):
    """What proftop said, a report a second."""
    command = [PROFTOP, "-b", "--format", "json", *map(str, arguments)]
    output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return [json.loads(line) for line in output.stdout.splitlines()]


def environments(folder):
    found = sorted(Path(folder).resolve().glob("*/bin/python"))
    return {python.parent.parent.name: python for python in found}


def can_import(python, names):
    return subprocess.run([python, "-c", f"import {names}"], capture_output=True).returncode == 0


def measure_loads(folder):
    port = 8400
    for version, python in environments(folder).items():
        for name, (needs, command) in LOADS.items():
            port += 1
            if not can_import(python, needs):
                print(f"| {version} | {name} | not here: {needs} |", flush=True)
                continue
            tool, *arguments = command.replace("PORT", str(port)).split()
            program = start([python.parent / tool, *arguments])
            text = CLIENT.replace("PORT", str(port))
            client = start([python, "-c", text]) if "gunicorn" in needs else None
            time.sleep(3)
            try:
                last = reports("-F", 199, "-d", LOAD_SECONDS, "-n", 1, "-p", program.pid)[-1]
            finally:
                stop(program)
                if client:
                    stop(client)
            print_load(version, name, last)


def print_load(version, name, report):
    stacks = next((each for each in report["languages_run"] if each["language"] == "python"), None)
    if not stacks:
        print(f"| {version} | {name} | no sample |", flush=True)
        return
    share = 100 * stacks["whole"] / stacks["samples"]
    # Those of user space alone have a stack to be whole.
    whole = 100 * report["whole"] / max(1, report["user_stacks"])
    lacking = ", ".join(f"{count} {why}" for why, count in stacks["lacking"].items())
    print(f"| {version} | {name} | {stacks['samples']:,} | {share:.2f} % | {whole:.2f} % | {lacking} |", flush=True)


def own_cpu(*commands):
    """CPU seconds that profilers, all at once, and all of their processes took, by a control group."""
    group = watch.hierarchy() / f"proftop-bench-{os.getpid()}"
    group.mkdir(exist_ok=True)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    before = cpu_of(group)
    profilers = [subprocess.Popen(list(map(str, command)), **quiet,
                                  preexec_fn=lambda: (group / "cgroup.procs").write_text("0")) for command in commands]
    for profiler in profilers:
        if profiler.wait():
            raise SystemExit(f"{profiler.args}: {profiler.returncode}")
    while (group / "cgroup.procs").read_text():
        time.sleep(0.01)
    took = cpu_of(group) - before
    group.rmdir()
    return took


def cpu_of(group):
    return int((group / "cpu.stat").read_text().split()[1]) / 1e6


def measure_cost(folder):
    pythons = environments(folder)
    spies = [python.parent / "py-spy" for python in pythons.values() if (python.parent / "py-spy").exists()]
    for version, python in pythons.items():
        # A parent of eight, so that py-spy needs one process for all of them.
        text = ("import os, sys\nfor _ in range(%d):\n if not os.fork(): os.execv(sys.argv[1], "
                "[sys.argv[1], 'burn.py'])\nos.wait()" % PROCESSES)
        parent = start([python, "-c", text, python])
        time.sleep(2)
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        is_known = can_import(python, "profiling.sampling")
        builtin = [[python, "-m", "profiling.sampling", "attach", "-r", RATE, "-d", SECONDS, "-a",
                    "--collapsed", "-o", "/dev/null", child] for child in children if is_known]
        # py-spy knows no version that has a profiler.
        has_spy = bool(spies) and not is_known
        ours, theirs, its = [], [], []
        shares, bands, truth = Counter(), {}, Counter()
        with tempfile.TemporaryDirectory() as scratch:
            recording, raw = Path(scratch, "a.pft"), Path(scratch, "a.raw")
            try:
                for _ in range(ROUNDS):
                    ours.append(own_cpu([PROFTOP, "record", "-f", "-p", parent.pid, "-F", RATE,
                                         "-d", SECONDS, "-o", recording]))
                    if has_spy:
                        theirs.append(own_cpu([spies[0], "record", "-p", parent.pid, "--subprocesses", "-r", RATE,
                                               "-d", SECONDS, "-f", "raw", "-o", raw]))
                    if builtin:
                        its.append(own_cpu(*builtin))
                folded = subprocess.run([PROFTOP, "export", recording, "-", "--format", "folded",
                                         "--filter", "only:lang:python"], stdout=subprocess.PIPE, check=True, text=True)
                shares, samples = totals(folded.stdout, lambda step: step.removesuffix("_[p]").split(".")[-1])
                truth, spied = totals(raw.read_text(), lambda step: step.split(" (")[0]) if has_spy else ({}, 0)
            finally:
                stop(parent)
        print(f"{version}: proftop {told(ours)}, py-spy {told(theirs)}, "
              f"Python's own {told(its)} CPU seconds of {SECONDS}", flush=True)
        for name in ("half", "quarter", "parse", "write"):
            ours_is = 100 * shares[name] / samples
            band = 196 * (ours_is / 100 * (1 - ours_is / 100) / samples) ** 0.5
            line = f"  {name}: {ours_is:.1f} ± {band:.1f} % of {samples:,}"
            if spied:
                theirs_is = 100 * truth[name] / spied
                line += f", py-spy {theirs_is:.1f} % of {spied:,}"
            print(line, flush=True)


def totals(folded, name):
    """Samples of each function or what it calls, and all samples, of folded stacks."""
    counts, samples = Counter(), 0
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        # py-spy writes command lines, which may have more than one line.
        if not count.isdigit():
            continue
        samples += int(count)
        for function in {name(step) for step in stack.split(";")}:
            counts[function] += int(count)
    return counts, samples


def told(seconds):
    if not seconds:
        return "not here"
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


def until_named(process, begin):
    """Seconds from a moment until a report has a function of Python."""
    for line in process.stdout:
        report = json.loads(line)
        if any(function["kind"] == "python" for function in report["functions"]):
            return time.monotonic() - begin
    raise SystemExit("proftop ended without a function of Python")


def measure_first(folder):
    arguments = ["-b", "--format", "json", "-d", "0.1", "-F", "499"]
    for version, python in environments(folder).items():
        after_start, after_process = [], []
        for _ in range(ROUNDS):
            program = start([python, "burn.py"])
            time.sleep(1)
            begin = time.monotonic()
            profiler = start([PROFTOP, *arguments, "-p", program.pid], stdout=subprocess.PIPE)
            after_start.append(until_named(profiler, begin))
            stop(profiler)
            stop(program)
            # Of the whole machine, and a process that starts later.
            profiler = start([PROFTOP, *arguments, "--filter", "lang:python", "--comm", "^burning$"],
                             stdout=subprocess.PIPE)
            time.sleep(3)
            text = "open('/proc/self/comm', 'w').write('burning')\nexec(open('burn.py').read())"
            begin = time.monotonic()
            program = start([python, "-S", "-E", "-c", text])
            after_process.append(until_named(profiler, begin))
            stop(profiler)
            stop(program)
        print(f"{version}: {told(after_start)} s after start, {told(after_process)} s after a new process", flush=True)


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in ("loads", "cost", "first"):
        sys.exit(__doc__)
    folder, what = sys.argv[1:]
    {"loads": measure_loads, "cost": measure_cost, "first": measure_first}[what](folder)


if __name__ == "__main__":
    main()
