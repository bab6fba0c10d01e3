"""Commands that name addresses of a file, all with inlined functions, files and lines."""

import glob
import os
import random
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

LLVM = ["llvm-symbolizer", "llvm-symbolizer-22"]


class Done(NamedTuple):
    cpu: float
    wall: float


def run(command, given="", **environment):
    with tempfile.TemporaryFile("w+") as text:
        text.write(given)
        text.seek(0)
        began = time.monotonic()
        process = subprocess.Popen(list(map(str, command)), stdin=text, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=os.environ | environment)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
        if status:
            print(f"{command} failed: {status}")
        return Done(used.ru_utime + used.ru_stime, time.monotonic() - began)


def files(target):
    """Symbols alone, Go with compressed debug information, Rust, and C with debug information, as far as here."""
    wanted = [
        *sorted(glob.glob("/usr/lib/x86_64-linux-gnu/libLLVM*.so.*"))[-1:],
        "/usr/local/bin/docker",
        target / "release/proftop",
        *sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[3-9]*/lib/libpython3.*.so.1.0")))[:1],
    ]
    return [Path(file).resolve() for file in wanted if Path(file).exists()]


FUNCTIONS = {}


def functions(file):
    if file not in FUNCTIONS:
        found = FUNCTIONS[file] = []
        for table in ([], ["-D"]):
            listed = subprocess.run(["nm", "-S", "--defined-only", *table, file], capture_output=True, text=True)
            for line in listed.stdout.splitlines():
                fields = line.split()
                # Go tells no sizes of some.
                if len(fields) > 3 and fields[2] in "tTwW" and int(fields[1], 16):
                    found.append((int(fields[0], 16), int(fields[1], 16)))
            if found:
                break
    return FUNCTIONS[file]


def addresses(file, count, seed):
    """Spread over all functions, the larger the more."""
    known = functions(file)
    if not known:
        return []
    chance = random.Random(seed)
    chosen = chance.choices(known, [size for _, size in known], k=count)
    return [hex(start + chance.randrange(size)) for start, size in chosen]


def tools(proftops, file):
    """Name, and what takes addresses and returns what it took; nothing is kept from one to the next."""
    for name, program in proftops:
        def ask(given, program=program):
            with tempfile.TemporaryDirectory() as cache:
                text = "".join(f"    #{n} {address} ({file}+{address})\n" for n, address in enumerate(given))
                return run([program, "symbolize"], text, PROFTOP_CACHE=cache)
        yield name, ask
    for name in LLVM:
        if program := shutil.which(name):
            yield name, lambda given, program=program: run(
                [program, "--inlines", f"--obj={file}"], "\n".join(given) + "\n")
    # blazesym's own program takes addresses as arguments.
    if program := shutil.which("blazecli"):
        yield "blazesym", lambda given, program=program: run(
            [program, "symbolize", "elf", "--path", file, *given])
    if program := shutil.which("addr2line"):
        yield "addr2line", lambda given: run([program, "-i", "-f", "-C", "-e", file], "\n".join(given) + "\n")
