#!/usr/bin/env python3
"""Measures the screen as a terminal sees it: see README.md.

    cargo build --release -p proftop --bins
    bench/screen.py

A recording of a million samples and a hundred thousand stacks is opened in a
pseudo-terminal; keys are pressed in every view, each when the screen is at rest,
and the time until the next whole frame is taken. Then the same with a hundred thousand
threads on four hundred CPUs, live while the names of a compiler come in (this needs
root, and rustc), and through a line of 64 kbit/s: what a key costs there, and whether
frames queue up.
"""

import fcntl
import os
import pty
import random
import select
import shutil
import statistics
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parent.parent / "target"))
PROFTOP = str(TARGET / "release/proftop")
STACKS, SAMPLES, FUNCTIONS = 100_000, 1_000_000, 8_000
ALL = b"1,000,000"
THREADS, PROCESSES, CPUS, CROWD = 100_000, 200, 400, b"500,000"
FRAME_END = b"\x1b[?2026l"
KEYS = 60


def write_recording(path):
    """Stacks of 10 to 49 frames with common beginnings, as real ones have."""
    chance = random.Random(1)
    with open(path, "w") as file:
        stack = []
        for _ in range(STACKS):
            depth = chance.randint(10, 49)
            keep = chance.randint(0, min(len(stack), depth))
            stack = stack[:keep]
            while len(stack) < depth:
                # A few functions are called from everywhere.
                stack.append(f"function_{int(FUNCTIONS * chance.random() ** 3):05}")
            file.write(";".join(stack) + f" {SAMPLES // STACKS}\n")


def write_crowd(path):
    """Five samples of each thread within a minute, as perf prints them."""
    chance = random.Random(2)
    samples = sorted((chance.random() * 60, thread) for thread in list(range(THREADS)) * 5)
    with open(path, "w") as file:
        for time_, thread in samples:
            pid = 1_000 + thread % PROCESSES
            file.write(f"worker-{thread % 977} {pid}/{10_000 + thread} [{chance.randrange(CPUS):03}] "
                       f"{1_000 + time_:.6f}:  10101010 cpu-clock: \n")
            for depth in range(chance.randint(5, 20)):
                function = int(FUNCTIONS * chance.random() ** 3)
                file.write(f"\t{0x1000 + function * 64:x} function_{function:05}+0x4 (/usr/bin/app)\n")
            file.write("\n")


class Screen:
    def __init__(self, arguments, width, height, bytes_per_second=None, **environment):
        self.rate = bytes_per_second
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", LANG="C.UTF-8", PROFTOP_CONFIG="/dev/null",
                              XDG_STATE_HOME="/dev/null")
            os.environ.update(environment)
            os.execv(PROFTOP, [PROFTOP, *arguments])
        size = struct.pack("HHHH", height, width, 0, 0)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, size)
        self.text = b""

    def read(self, seconds):
        """What comes within a time, at the rate of the line."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return b""
        got = os.read(self.terminal, 512 if self.rate else 1 << 16)
        if self.rate:
            time.sleep(len(got) / self.rate)
        return got

    def until_frame(self, patience=10):
        """The bytes to the end of the next whole frame, and when that was."""
        end, got = time.monotonic() + patience, b""
        while FRAME_END not in got and time.monotonic() < end:
            got += self.read(end - time.monotonic())
        return got, time.monotonic()

    def until(self, marker, patience=60):
        end, got = time.monotonic() + patience, b""
        while marker not in got:
            assert time.monotonic() < end, f"in vain: {marker}"
            got += self.read(1)
        return got

    def rest(self, seconds=0.15):
        """Until nothing has come for a while."""
        got = b""
        while more := self.read(seconds):
            got += more
        return got

    def press(self, keys):
        os.write(self.terminal, keys)

    def main_thread_seconds(self):
        return int(open(f"/proc/{self.pid}/task/{self.pid}/schedstat").read().split()[0]) / 1e9

    def close(self):
        os.write(self.terminal, b"\x1b")
        self.rest()
        os.write(self.terminal, b"q")
        try:
            while self.read(5):
                pass
        except OSError:
            pass  # The other end is closed: it has ended.
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


VIEWS = [
    ("tree", b"2", b"jl"),
    ("functions", b"1", b"jk"),
    ("flame graph", b"3", b"jlhk"),
    ("function page", b"1\r", b"jk"),
    ("processes", b"4", b"jk"),
    ("health", b"8", b"jk"),
]


CROWDED = [
    ("threads", b"5", b"jk"),
    ("processes", b"4", b"jk"),
    ("time", b"6", b"hl"),
    ("tree", b"2", b"jl"),
    ("by thread", b"o", b"jk"),
    ("functions", b"1", b"jk"),
]


def views(recording, width, height, which=VIEWS, all_samples=ALL):
    began = time.monotonic()
    screen = Screen(["open", recording], width, height)
    screen.until_frame()
    print(f"\n{width}x{height}: first frame after {1e3 * (time.monotonic() - began):.0f} ms", end="")
    screen.until(all_samples)
    print(f", all samples after {1e3 * (time.monotonic() - began):.0f} ms")
    screen.rest(1)
    print(f"{'view':14} {'open':>8} {'key p50':>8} {'p99':>8} {'cpu/key':>8} {'bytes p50':>9} {'max':>7}")
    for name, keys, moves in which:
        pressed = time.monotonic()
        for key in keys:
            screen.press(bytes([key]))
        _, at = screen.until_frame()
        opened = at - pressed
        screen.rest(1)
        took, sizes, cpu = [], [], screen.main_thread_seconds()
        for number in range(KEYS):
            pressed = time.monotonic()
            screen.press(moves[number % len(moves):][:1])
            got, at = screen.until_frame(1)
            if FRAME_END in got:
                took.append(at - pressed)
                sizes.append(len(got))
            screen.rest(0.05)
        cpu = (screen.main_thread_seconds() - cpu) / KEYS
        row = [opened, statistics.median(took), percentile(took, 0.99), cpu]
        print(f"{name:14} " + " ".join(f"{1e3 * value:5.1f} ms" for value in row), end="")
        print(f" {statistics.median(sizes):9.0f} {max(sizes):7}")
    screen.close()


def while_names_come(folder):
    """Keys from the first frame on, with nothing in the caches."""
    if os.geteuid() != 0 or not shutil.which("rustc"):
        print("\nskipped: while names come: it needs root, and rustc")
        return
    source = Path(__file__).parent.parent / "tui/examples/burn.rs"
    compile_ = f"while :; do rustc --edition 2024 -O -o {folder}/out {source}; done"
    screen = Screen(["--", "sh", "-c", compile_], 160, 45, XDG_CACHE_HOME=f"{folder}/cache",
                    XDG_STATE_HOME=f"{folder}/state")
    screen.until_frame()
    took, began = [], time.monotonic()
    while time.monotonic() - began < 8:
        pressed = time.monotonic()
        # Another view: something that changes, whatever there is.
        screen.press(b"18"[len(took) % 2:][:1])
        got, at = screen.until_frame(1)
        if FRAME_END in got:
            took.append(at - pressed)
        screen.rest(0.05)
    print(f"\nlive, 160x45, the first 8 s, names coming in: a key {1e3 * statistics.median(took):.1f} ms, "
          f"p99 {1e3 * percentile(took, 0.99):.0f} ms, {len(took)} keys")
    screen.close()


def find_and_filter(recording):
    """What has to be computed anew: until the screen is at rest."""
    screen = Screen(["open", recording], 160, 45)
    screen.until(ALL)
    screen.rest(1)
    for name, keys in [("find", b"/_0042\r"), ("filter", b"\\!function_00007\r"),
                       ("undo", b"\x7f"), ("tree inverted", b"2I"), ("focus", b"1jf")]:
        pressed = time.monotonic()
        screen.press(keys)
        got = screen.rest(0.6)
        print(f"{name:14} at rest after {1e3 * (time.monotonic() - pressed - 0.6):5.0f} ms, {len(got)} bytes")
    screen.close()


def slow_line(recording):
    """64 kbit/s. A held key must not leave a queue of frames behind it."""
    screen = Screen(["open", recording], 80, 24, 8_000)
    screen.until(ALL)
    screen.rest(2)
    took = []
    for number in range(20):
        pressed = time.monotonic()
        screen.press(b"jk"[number % 2:][:1])
        took.append(screen.until_frame()[1] - pressed)
        screen.rest(0.3)
    print(f"\n64 kbit/s, 80x24: a key {1e3 * statistics.median(took):.0f} ms, p99 {1e3 * percentile(took, 0.99):.0f} ms")
    for _ in range(60):
        screen.press(b"j")
        screen.read(0.03)
    pressed = time.monotonic()
    got = screen.rest(0.5)
    print(f"after two seconds of a held key: at rest after {time.monotonic() - pressed - 0.5:.2f} s, {len(got)} bytes")
    screen.close()


def main():
    with tempfile.TemporaryDirectory() as folder:
        recording = f"{folder}/big.folded"
        write_recording(recording)
        views(recording, 80, 24)
        views(recording, 160, 45)
        print()
        find_and_filter(recording)
        slow_line(recording)
        write_crowd(recording)
        views(recording, 160, 45, CROWDED, CROWD)
        while_names_come(folder)


if __name__ == "__main__":
    sys.exit(main())
