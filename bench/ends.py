#!/usr/bin/env python3
"""How long proftop takes to end on a busy machine, in each mode and by each way to end it.

    cargo build --release -p proftop
    sudo bench/ends.py [--rounds 5] [--programs 6] [MODE…]     all modes: --help

Beside PROFTOP (or the release build) it measures the program BEFORE, if there is one, in turns.
Each run is ended at a random moment of its first five seconds; what counts is the time from that
until the process has ended. `--programs` compute all the time, and two more start short processes.
"""

import argparse
import fcntl
import os
import pty
import random
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
PROFTOP = os.environ.get("PROFTOP", str(TARGET / "release/proftop"))

COMPUTE = "def f(n):\n  return sum(i * i for i in range(n))\nwhile True: f(10000)"
SHORT = "while :; do /bin/ls / > /dev/null; python3 -S -c 1; done"

# OUT, IN, CONTROL and BUSY stand for paths and for the process id of a program that computes.
MODES = {
    "reports": "-b -d 1 --format json",
    "long-reports": "-b -d 10",
    "reports-perf": "--engine perf -b -d 1",
    "command": "-b -d 1 -- sh -c BURN",
    "waits": "-b -d 1 --metric off-cpu",
    "record": "record -F 999 -o OUT",
    "record-perf": "record --engine perf -F 999 -o OUT",
    "stream": "record -F 999 -o -",
    "ring": "record --ring 10m -F 199 -o OUT",
    "agent": "agent --ring 10s -o OUT --control CONTROL",
    "trace": "trace -p BUSY -d 600 libc!malloc",
    "trace-json": "trace -p BUSY -d 600 --format json libc!malloc",
    "mcp": "mcp",
    "screen": "",
    "screen-perf": "--engine perf",
    "screen-process": "-p BUSY",
    "screen-recording": "open IN",
    "demo": "demo",
    "plain": "--plain",
}
ON_TERMINAL = {"screen", "screen-perf", "screen-process", "screen-recording", "demo", "plain"}
BY_SIGNAL = ["TERM", "INT", "HUP"]


def ways_to_end(mode):
    if mode == "plain":
        return BY_SIGNAL + ["gone", "end of input"]
    if mode in ON_TERMINAL:
        return BY_SIGNAL + ["gone", "q"]
    if mode == "command":
        return ["TERM", "HUP"]  # ^C is the command's own: proftop waits for it
    if mode in ("reports", "stream", "trace-json"):
        return BY_SIGNAL + ["closed pipe"]
    return BY_SIGNAL


class Reader:
    """Reads what a run writes, so that it does not wait for a reader."""

    def __init__(self, fd):
        self.fd, self.stopped = fd, threading.Event()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        while not self.stopped.is_set():
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    if not os.read(self.fd, 65536):
                        return
                except OSError:
                    return

    def stop(self):
        self.stopped.set()
        self.thread.join()


def with_usual_signals():
    os.setsid()
    for name in BY_SIGNAL:
        signal.signal(getattr(signal, "SIG" + name), signal.SIG_DFL)


def seconds_to_end(program, mode, how, folder, busy):
    """Starts the mode, ends it, and returns how long that took, and whether the deadline after a
    signal cut it short, before the last report or the end of the file. None if it ended by itself.
    """
    for left in folder.glob("run*"):
        left.unlink()
    paths = {"OUT": "run.pft", "CONTROL": "run.socket", "IN": "in.pft"}
    words = {word: str(folder / name) for word, name in paths.items()}
    words |= {"BUSY": str(busy), "BURN": "while :; do :; done"}
    command = [program] + [words.get(word, word) for word in MODES[mode].split()]
    environment = os.environ | {"PROFTOP_CONFIG": "/dev/null", "XDG_STATE_HOME": "/dev/null",
                                "TERM": "xterm-256color"}
    options = {"env": environment, "stderr": subprocess.DEVNULL, "preexec_fn": with_usual_signals}
    ours = None
    if mode in ON_TERMINAL:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        run = subprocess.Popen(command, stdin=theirs, stdout=theirs, **options)
        os.close(theirs)
    else:
        stdin = subprocess.PIPE if mode == "mcp" else subprocess.DEVNULL
        run = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, **options)
    reader = Reader(run.stdout.fileno() if ours is None else ours)
    time.sleep(random.uniform(0.1, 5))
    ended_before = run.poll() is not None
    if how in ("gone", "closed pipe"):
        reader.stop()
    begun = time.monotonic()
    if how == "gone":
        os.close(ours)
        ours = None
    elif how == "closed pipe":
        run.stdout.close()
    elif how in ("end of input", "q"):
        os.write(ours, b"q" if how == "q" else b"\x04")
    else:
        run.send_signal(getattr(signal, "SIG" + how))
    try:
        run.wait(20)
    except subprocess.TimeoutExpired:
        run.kill()
        run.wait()
    took = time.monotonic() - begun
    reader.stop()
    for stream in (run.stdin, run.stdout):
        if stream:
            stream.close()
    if ours is not None:
        os.close(ours)
    # Screens, dialogs and servers always end with the number of the signal, as a command does that
    # gets it passed on.
    is_cut = mode not in ON_TERMINAL | {"mcp", "command"} and not 0 <= run.returncode < 128
    return None if ended_before else (took, is_cut)


def measure(mode, how, rounds, programs, folder, busy):
    took = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            ended = seconds_to_end(program, mode, how, folder, busy)
            took[name] += [] if ended is None else [ended]
    for name, all_of in took.items():
        load = f"load {os.getloadavg()[0]:.0f}"
        print(f"{mode:16} {how:12} {name:6} {words(all_of)}, {load}", flush=True)
    return took


def words(all_of):
    if not all_of:
        return "all ended by themselves"
    seconds = [took for took, _ in all_of]
    return (f"median {statistics.median(seconds):.2f} s, most {max(seconds):.2f}, over a second "
            f"{sum(took > 1 for took in seconds)}, cut short {sum(cut for _, cut in all_of)} "
            f"of {len(all_of)}")


def main():
    arguments = argparse.ArgumentParser(
        description=__doc__, epilog="Modes: " + ", ".join(MODES),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--programs", type=int, default=6)
    arguments.add_argument("modes", nargs="*")
    asked = arguments.parse_args()
    if unknown := [mode for mode in asked.modes if mode not in MODES]:
        arguments.error(f"no such mode: {', '.join(unknown)}")
    programs = {"now": PROFTOP}
    if before := os.environ.get("BEFORE"):
        programs["before"] = before
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    commands = [[sys.executable, "-c", COMPUTE]] * asked.programs + [["sh", "-c", SHORT]] * 2
    busy = [subprocess.Popen(command, start_new_session=True) for command in commands]
    took = {name: [] for name in programs}
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            subprocess.run([PROFTOP, "record", "-d", "2", "-o", str(folder / "in.pft")],
                           stderr=subprocess.DEVNULL)
            for mode in asked.modes or MODES:
                for how in ways_to_end(mode):
                    ended = measure(mode, how, asked.rounds, programs, folder, busy[0].pid)
                    for name, all_of in ended.items():
                        took[name] += all_of
    finally:
        for program in busy:
            os.killpg(program.pid, signal.SIGKILL)
    for name, all_of in took.items():
        print(f"all, {name}: {words(all_of)}")


if __name__ == "__main__":
    main()
