"""Which part of the stacks that a tool has taken is whole, and which part of their frames has a name, by one
rule for all tools."""

import re
import subprocess
from typing import NamedTuple

# Where threads begin: in the C library, in the dynamic loader, and in Go.
ROOTS = re.compile(r"^(_start|_dl_start_user|__libc_start_main|__libc_start_main_impl|__libc_start_call_main|"
                   r"(__)?clone3?|start_thread|runtime\.(goexit|mstart|rt0_go)[\w.]*)(@.*)?$")
# Where an address, or what is missing, is in place of a name.
NAMELESS = re.compile(r"^$|^\[|unknown|(^|[+!])0x[0-9a-f]+|^[0-9a-f]{6,}$")
KERNEL = 1 << 63


class Counted(NamedTuple):
    """Sums over samples: of stacks in user space, and of their frames."""
    stacks: int
    whole: int
    frames: int
    named: int

    def values(self):
        return {"whole stacks, %": 100 * self.whole / max(1, self.stacks),
                "named frames, %": 100 * self.named / max(1, self.frames),
                "frames a stack": self.frames / max(1, self.stacks),
                "samples": self.stacks}


def count(stacks):
    """Counts stacks in user space: names, outermost first, and how many samples have them."""
    stacks = [(names, samples) for names, samples in stacks if names]
    return Counted(
        sum(samples for _, samples in stacks),
        sum(samples for names, samples in stacks if any(map(ROOTS.match, names[:2]))),
        sum(samples * len(names) for names, samples in stacks),
        sum(samples * sum(not NAMELESS.search(name) for name in names) for names, samples in stacks))


# Each of these leaves out samples of programs whose name begins with `own`: those of the tool itself.

def of_folded(text, own):
    """Lines such as `comm;main;work;read_[k] 12`."""
    for line in text.splitlines():
        stack, _, samples = line.rpartition(" ")
        comm, *names = stack.split(";")
        # Its threads have names of their own.
        is_own = any(name.startswith(own) for name in (comm, *names))
        if samples.isdigit() and not is_own:
            yield [name.removesuffix("_[i]") for name in names if not name.endswith("_[k]")], int(samples)


def of_perf(file, own):
    """What `perf script` prints: a line for a sample, one for each of its frames, and an empty one."""
    script = subprocess.run(["perf", "script", "-i", file, "--no-inline", "-F", "comm,ip,sym"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    for sample in script.stdout.split("\n\n"):
        comm, *lines = sample.strip("\n").splitlines() or [own]
        if comm.strip().startswith(own):
            continue
        frames = [line.split(None, 1) for line in lines]
        names = [(frame + [""])[1] for frame in frames if frame and int(frame[0], 16) < KERNEL]
        yield names[::-1], 1


def of_bpftrace(text, own):
    """Maps of `@[comm, ustack(perf)]`, as bpftrace prints them at its end."""
    for comm, frames, samples in re.findall(r"^@\[([^\n]*?), ?\n?(.*?)\]: (\d+)$", text, re.DOTALL | re.MULTILINE):
        if comm.startswith(own):
            continue
        names = [(line.split(None, 1) + [""])[1].rsplit(" (", 1)[0] for line in frames.splitlines() if line.strip()]
        yield [name.split("+0x")[0] for name in names][::-1], int(samples)
