"""One tool while it runs: what it uses, with all its processes and threads, and what it says."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time
from pathlib import Path
from typing import NamedTuple


def hierarchy():
    """Where control groups are made: the kernel counts CPU time in each of version 2."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(place)
    raise SystemExit("no control groups of version 2 are mounted here")


class Look(NamedTuple):
    cpu: float
    switches: int


class Watched:
    """A tool in a control group of its own, so that what has ended counts too."""

    def __init__(self, command, terminal=False, **environment):
        self.group = hierarchy() / f"proftop-bench-{os.getpid()}"
        self.group.mkdir(exist_ok=True)
        self.output, self.times = b"", []
        environment = os.environ | {"TERM": "xterm-256color", "PROFTOP_CONFIG": "/dev/null",
                                    "XDG_STATE_HOME": "/dev/null"} | environment
        if terminal:
            self.end, given = pty.openpty()
            fcntl.ioctl(given, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 160, 0, 0))
            streams = {"stdin": given, "stdout": given, "stderr": given}
        else:
            self.end, given = os.pipe()
            streams = {"stdin": subprocess.DEVNULL, "stdout": given, "stderr": given}
        self.began = time.monotonic()
        self.process = subprocess.Popen(list(map(str, command)), **streams, env=environment, start_new_session=True,
                                        preexec_fn=lambda: self.settle(terminal))
        os.close(given)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def settle(self, terminal):
        """In the new process."""
        (self.group / "cgroup.procs").write_text("0")
        if terminal:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for number in (signal.SIGINT, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(number)
                try:
                    self.process.wait(10)
                except subprocess.TimeoutExpired:
                    pass
        for _ in range(200):
            for left in self.pids():
                os.kill(left, signal.SIGKILL)
            try:
                self.group.rmdir()
                break
            except OSError:
                time.sleep(0.02)
        self.reader.join(2)
        os.close(self.end)

    def read(self):
        while True:
            try:
                came = os.read(self.end, 1 << 16)
            except OSError:
                came = b""
            if not came:
                return
            self.times.append((time.monotonic() - self.began, len(self.output)))
            # Nobody asks what a tool has said after so much.
            if len(self.output) < 1 << 20:
                self.output += came

    def said(self):
        return self.output.decode(errors="replace")

    def when(self, wanted):
        """Seconds until a pattern was in the output. None: not yet."""
        found = re.search(wanted, self.output)
        if not found:
            return None
        return max(time for time, start in self.times if start < found.end())

    def type(self, keys):
        os.write(self.end, keys.encode())

    def runs(self):
        return self.process.poll() is None

    def wait(self):
        self.process.wait(20)
        self.reader.join(2)

    def pids(self):
        return list(map(int, (self.group / "cgroup.procs").read_text().split()))

    def look(self):
        """CPU seconds of all that ran in the group, and how often its threads went to sleep."""
        usage = (self.group / "cpu.stat").read_text().split()[1]
        return Look(int(usage) / 1e6, sum(map(self.switches, self.pids())))

    def switches(self, pid):
        total = 0
        for task in Path(f"/proc/{pid}/task").glob("*/status"):
            try:
                lines = task.read_text().splitlines()
            except OSError:
                continue
            total += next((int(line.split()[1]) for line in lines if line.startswith("voluntary")), 0)
        return total

    def pss(self):
        total = 0
        for pid in self.pids():
            try:
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            except OSError:
                continue
            total += next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0) * 1024
        return total
