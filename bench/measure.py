#!/usr/bin/env python3
"""Measures what proftop costs and whether it counts right: see README.md.

    cargo build --release -p proftop --bins --examples
    sudo bench/measure.py [NAME...]
"""

import json
import os
import re
import resource
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parent.parent / "target"))
PROFTOP = str(TARGET / "release/proftop")
BURN = str(TARGET / "release/examples/burn")
CPUS = os.cpu_count()


def burn(seconds, threads=CPUS):
    return subprocess.Popen([BURN, str(seconds), str(threads)], stdout=subprocess.PIPE, text=True)


def reports(*args):
    command = [PROFTOP, "-b", "--format", "json", *map(str, args)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proftop:
        for line in proftop.stdout:
            yield json.loads(line)


def busy_seconds():
    """User, nice, system, irq and softirq time of all CPUs."""
    fields = list(map(int, open("/proc/stat").readline().split()[1:8]))
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def exactness():
    """Samples against busy time x rate, over one report's own window."""
    busy = burn(75)
    rate, marks = 999, []
    for report in reports("-F", rate, "-n", 7, "-d", 10):
        # The report comes a moment after its window ends: both looks are late
        # by about the same.
        marks.append((time.time() * 1e3 - report["time_unix_ms"], busy_seconds(), report))
    busy.kill()
    samples = sum(report["samples"] for _, _, report in marks[1:])
    lost = marks[-1][2]["lost_run"]
    spent = marks[-1][1] - marks[0][1] - (marks[-1][0] - marks[0][0]) / 1e3 * CPUS
    print(f"{samples} samples, {lost} lost; {spent:.2f} s busy x {rate} Hz = {spent * rate:.0f}: "
          f"{samples / (spent * rate):.4f}")


def short_lived():
    """200 processes a second."""
    stop = threading.Event()

    def start_processes():
        due = time.monotonic()
        while not stop.is_set():
            subprocess.run(["/bin/true"], check=True)
            due += 0.005
            time.sleep(max(0, due - time.monotonic()))

    starting = threading.Thread(target=start_processes)
    starting.start()
    began, rss, samples, frames, named, unplaced, nameless, processes = time.time(), [], 0, 0, 0, 0, 0, set()
    for report in reports("-F", 999, "-n", 30, "-d", 1):
        rss.append(report["own"]["rss_bytes"] / 1e6)
        samples += report["samples"]
        frames += report["frames"]
        named += report["named"]
        unplaced += report["endings"].get("no_mapping", 0)
        nameless += sum(p["samples"] for p in report["processes"] if not p["pid"] or not p["comm"])
        processes |= {p["pid"] for p in report["processes"]}
        last = report
    stop.set()
    starting.join()
    print(f"{samples} samples of {len(processes)} processes in {time.time() - began:.0f} s, "
          f"{last['lost_run']} lost; without pid or comm: {nameless}; stacks ended by no_mapping: {unplaced}; "
          f"frames named: {named}/{frames} = {100 * named / frames:.1f}%; "
          f"RSS {rss[0]:.0f} -> {rss[len(rss) // 2]:.0f} -> {rss[-1]:.0f} MB; notes {last['notes']}")


def start():
    """The first paint, samples and names on the screen, in a terminal."""
    found = {"paint": [], "samples": [], "names": []}
    for _ in range(5):
        script = f"(sleep 3; printf q) | script -qec 'PROFTOP_TRACE_START=1 {PROFTOP}' /dev/null"
        said = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, text=True,
                              env=os.environ | {"TERM": "xterm"}).stdout
        for what, ms in re.findall(r"first (\w+) after ([\d.]+) ms", said):
            found[what].append(float(ms))
    for what, times in found.items():
        print(f"first {what}: median {statistics.median(times):.0f} ms of {sorted(times)}")


def own_cost():
    """CPU and memory of proftop, from outside: /proc, not what it says."""
    for rate, seconds in ((99, 120), (999, 30)):
        busy = burn(seconds + 5)
        said = []
        proftop = subprocess.Popen([PROFTOP, "-b", "--format", "json", "-F", str(rate), "-d", "1"],
                                   stdout=subprocess.PIPE, text=True)
        threading.Thread(target=lambda: said.extend(map(json.loads, proftop.stdout)), daemon=True).start()
        time.sleep(5)
        before, began = cpu_seconds(proftop.pid), time.monotonic()
        time.sleep(seconds - 5)
        percent = 100 * (cpu_seconds(proftop.pid) - before) / (time.monotonic() - began)
        rss = int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{proftop.pid}/status").read())[1]) / 1e3
        proftop.terminate()
        proftop.wait()
        busy.kill()
        own = statistics.median(report["own"]["cpu_percent"] for report in said[5:])
        print(f"{rate} Hz: {percent:.2f}% of one CPU in user space; with the kernel's part, as it says: "
              f"{own:.2f}%; RSS {rss:.0f} MB after {seconds} s")


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")")[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def slow_down():
    """Work done per CPU second by a busy program, without and with proftop, in turns."""
    for rate in (99, 999):
        ratios = []
        for _ in range(5):
            alone = work_per_second()
            proftop = subprocess.Popen([PROFTOP, "-b", "-F", str(rate), "-d", "1"], stdout=subprocess.DEVNULL)
            time.sleep(2)
            watched = work_per_second()
            proftop.terminate()
            proftop.wait()
            ratios.append(100 * (alone / watched - 1))
        print(f"{rate} Hz: slower by {statistics.median(ratios):.2f}% (median), "
              f"{', '.join(f'{ratio:.2f}' for ratio in ratios)}")


def work_per_second():
    seconds = 3
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    rate = float(subprocess.check_output([BURN, str(seconds), str(CPUS)], text=True).split()[0])
    return rate * seconds / (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)


def kernel_cost():
    """Time of the BPF program, by the kernel's own count."""
    sysctl = "/proc/sys/kernel/bpf_stats_enabled"
    Path(sysctl).write_text("1")
    busy = burn(15)
    proftop = subprocess.Popen([PROFTOP, "-b", "-F", "999", "-d", "1"], stdout=subprocess.DEVNULL)
    time.sleep(12)
    shown = subprocess.check_output(["bpftool", "-j", "prog", "show"], text=True)
    for program in json.loads(shown):
        if program.get("name") == "sample" and program.get("run_cnt"):
            runs, ns = program["run_cnt"], program["run_time_ns"]
            print(f"{ns / runs:.0f} ns per sample ({runs} runs)")
    proftop.terminate()
    busy.kill()
    Path(sysctl).write_text("0")


ALL = [start, exactness, short_lived, own_cost, kernel_cost, slow_down]
wanted = [each for each in ALL if each.__name__ in sys.argv[1:]] or ALL
for measure in wanted:
    print(f"== {measure.__name__}: {measure.__doc__}", flush=True)
    measure()
