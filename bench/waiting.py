#!/usr/bin/env python3
"""What following waits costs, and whether no long one is missed: see README.md.

    cargo build --release -p proftop
    sudo bench/waiting.py cost          BPF and own CPU time by switches a second
    sudo bench/waiting.py slow          what programs lose, in turns beside other tools
    sudo bench/waiting.py stall [20]    one stall of 500 ms among a million switches

`slow` takes PostgreSQL and the other tools from PATH, where they are.
"""

import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
PROFTOP = os.environ.get("PROFTOP", str(TARGET / "release/proftop"))
STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")
TICKS = os.sysconf("SC_CLK_TCK")

# What bcc's and bpftrace's offcputime do: both stacks at each switch, and the time by them.
BPFTRACE = """
tracepoint:sched:sched_switch {
  if (args->prev_pid) { @start[args->prev_pid] = nsecs; @k[args->prev_pid] = kstack; @u[args->prev_pid] = ustack; }
  $since = @start[args->next_pid];
  if ($since) { @ns[@k[args->next_pid], @u[args->next_pid], args->next_comm] = sum(nsecs - $since);
    delete(@start[args->next_pid]); delete(@k[args->next_pid]); delete(@u[args->next_pid]); }
}
END { clear(@start); clear(@k); clear(@u); }
"""


def pingpong(folder):
    program = Path(folder) / "pingpong"
    subprocess.run(["cc", "-O2", "-g", "-pthread", HERE / "waiting/pingpong.c", "-o", program], check=True)
    return str(program)


def programs():
    """Run time and runs of the loaded programs, by number."""
    shown = json.loads(subprocess.check_output(["bpftool", "-j", "prog", "show"], text=True))
    return {each["id"]: (each.get("name", "?"), each.get("run_time_ns", 0), each.get("run_cnt", 0)) for each in shown}


def cpu_seconds(pid):
    """CPU time of a process and of its children that it waited for, and of those that live."""
    def of(number):
        fields = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / TICKS
    total = of(pid)
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        total += of(child)
    return total


@contextmanager
def running(command, settle=0.0, **more):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(list(map(str, command)), **(quiet | more), start_new_session=True)
    try:
        time.sleep(settle)
        yield process
    finally:
        for number in (signal.SIGINT, signal.SIGKILL):
            if process.poll() is None:
                os.killpg(process.pid, number)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    pass


def follower(*more):
    return [PROFTOP, "-b", "--metric", "off-cpu", "-d", "1", "-n", "1000", "--format", "json", *more]


def cost():
    with tempfile.TemporaryDirectory() as folder:
        program = pingpong(folder)
        STATISTICS.write_text("1")
        try:
            for rate in (20_000, 200_000, 0):
                rounds = [cost_of(program, rate) for _ in range(3)]
                for row in zip(*rounds):
                    print_cost(row)
        finally:
            STATISTICS.write_text("0")


def cost_of(program, rate, seconds=6):
    """For each program: name, ns a run, percent of a CPU; last, proftop's own."""
    others = programs().keys()
    with running(follower(), settle=3) as tool:
        with running([program, seconds + 2, rate]):
            time.sleep(1)
            before, own, begin = programs(), cpu_seconds(tool.pid), time.monotonic()
            switches = switched()
            time.sleep(seconds)
            after, spent, passed = programs(), cpu_seconds(tool.pid) - own, time.monotonic() - begin
            switches = (switched() - switches) / passed
    rows = []
    for number, (name, ns, runs) in sorted(after.items()):
        if number in others:
            continue
        _, ns_before, runs_before = before.get(number, (name, 0, 0))
        ns, runs = ns - ns_before, runs - runs_before
        rows.append((switches, name, ns / max(runs, 1), runs / passed, 100 * ns / 1e9 / passed))
    whole = sum(row[4] for row in rows)
    return [*rows, (switches, "all programs", 0, 0, whole), (switches, "proftop itself", 0, 0, 100 * spent / passed)]


def print_cost(rounds):
    switches = statistics.median(row[0] for row in rounds)
    ns, runs, share = (statistics.median(row[at] for row in rounds) for at in (2, 3, 4))
    print(f"{switches:9.0f} switches/s  {rounds[0][1]:16} {ns:7.0f} ns a run  {runs:9.0f} runs/s  {share:6.2f}% of a CPU", flush=True)


def switched():
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith("ctxt "):
            return int(line.split()[1])
    raise RuntimeError("/proc/stat has no switches")


def tools(folder):
    yield "nothing", None
    yield "proftop", follower()
    if shutil.which("bpftrace"):
        yield "bpftrace", ["bpftrace", "-e", BPFTRACE]
    if shutil.which("offcputime-bpfcc"):
        yield "offcputime-bpfcc", ["offcputime-bpfcc", "-f", "600"]
    if shutil.which("perf"):
        yield "perf sched record", ["perf", "sched", "record", "-o", f"{folder}/perf.data"]
        yield "perf sched record -g", ["perf", "sched", "record", "-g", "-o", f"{folder}/perf.data"]


def slow(rounds=5):
    with tempfile.TemporaryDirectory() as folder:
        program = pingpong(folder)
        say = lambda *words: float(subprocess.run(list(map(str, [program, *words])), capture_output=True, text=True, check=True).stdout.split()[0])
        in_turn(folder, "rounds a second of a ping-pong", lambda: say(3, 0), rounds)
        with postgres(folder) as bench:
            if bench:
                in_turn(folder, "transactions a second of pgbench", bench, rounds)


def in_turn(folder, what, work, rounds):
    found = {}
    for turn in range(rounds):
        for name, command in tools(folder):
            if command is None:
                found.setdefault(name, []).append(work())
                continue
            if found.get(name) is None and turn > 0:
                continue
            with running(command, settle=4) as tool:
                if tool.poll() is not None:
                    print(f"{name} does not run here", flush=True)
                    found[name] = None
                    continue
                found.setdefault(name, []).append(work())
            Path(f"{folder}/perf.data").unlink(missing_ok=True)
    base = statistics.median(found["nothing"])
    for name, values in found.items():
        if values:
            middle = statistics.median(values)
            print(f"{what}, {name}: {middle:.0f} ({100 * (middle / base - 1):+.1f}%)", flush=True)


@contextmanager
def postgres(folder):
    """Gives what runs pgbench for some seconds, or None where there is no PostgreSQL."""
    if not shutil.which("initdb") or not shutil.which("pgbench"):
        yield None
        return
    home = Path(folder) / "postgres"
    home.mkdir()
    shutil.chown(home, "nobody")
    Path(folder).chmod(0o755)
    become = ["setpriv", "--reuid", "nobody", "--clear-groups"]
    run = lambda *words, **more: subprocess.run([*become, *map(str, words)], cwd=home, check=True, capture_output=True, text=True, **more)
    run("initdb", "-D", home / "data", "-U", "bench")
    server = [*become, "postgres", "-D", home / "data", "-k", home, "-h", ""]
    with running(server, settle=2, cwd=home):
        at = ["-h", home, "-U", "bench"]
        run("pgbench", *at, "-i", "-s", "5", "postgres")

        def bench(seconds=4):
            said = run("pgbench", *at, "-S", "-c", "4", "-j", "2", "-T", seconds, "postgres").stdout
            return float(next(line for line in said.splitlines() if line.startswith("tps")).split()[2])
        yield bench


def stall(rounds="20"):
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        program = pingpong(folder)
        for turn in range(int(rounds)):
            after = random.randrange(1_000, 500_000)
            file = f"{folder}/waits.pft"
            record = [PROFTOP, "record", "--force", "--metric", "off-cpu", "-o", file, "--", program, "600", "0", after, 500_000]
            said = subprocess.run(list(map(str, record)), capture_output=True, text=True, check=True).stdout
            switches = int(said.split()[1])
            shown = subprocess.run([PROFTOP, "report", file, "--format", "json", "--filter", "the_stall state:sleep"], capture_output=True, text=True)
            # Without the time in the queue behind it, which other programs decide.
            rows = json.loads(shown.stdout)["functions"] if shown.returncode == 0 else []
            rows = [each for each in rows if each["name"] == "the_stall"]
            longest = rows[0]["longest_wait_ns"] / 1e6 if rows else 0
            is_found = 495 < longest < 600
            found += is_found
            if not is_found:
                kept = f"/tmp/missed-{turn}.pft"
                shutil.copy(file, kept)
                print(f"see {kept}: {shown.returncode} {shown.stderr}", flush=True)
            print(f"{turn + 1}: {switches:,} switches, {'found' if is_found else 'MISSED'}: {longest:.1f} ms", flush=True)
    print(f"found {found} of {rounds}")


if __name__ == "__main__":
    commands = {"cost": cost, "slow": slow, "stall": stall}
    commands[sys.argv[1]](*sys.argv[2:])
