#!/usr/bin/env python3
"""Whether the first three lines of a short answer name what is wrong: see README.md.

    cargo build --release -p proftop
    sudo bench/culprits.py [--same | --planted] [NAME...]

Compiles small programs, each with one bottleneck, and asks `-b --format md --budget-tokens 1500`
about each while it runs. With --same: compiles some of them twice, records both, and counts how
often `diff --format md` says that there is no difference. With --planted: records a program and one
in which one function does a tenth more, and counts how often that function is said to have surely
grown. Languages that are not there are named
at the end. PROFTOP names another program.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROFTOP = os.environ.get("PROFTOP", str(TARGET / "release/proftop"))
PROGRAMS = Path(__file__).resolve().parent / "culprits"
SECONDS = 4
TOKENS = 1500
PAIRS = 8
PLANTED_SECONDS, PLANTED_HZ = 20, 999

COMPILERS = {
    ".c": lambda source, program: ["cc", "-O2", "-g", "-o", program, source, "-lpthread", "-lm"],
    ".cpp": lambda source, program: ["c++", "-O2", "-g", "-o", program, source, "-lpthread"],
    ".rs": lambda source, program: ["rustc", "-O", "-g", "-o", program, source],
    ".go": lambda source, program: ["go", "build", "-o", program, source],
}
RUNNERS = {".py": ["python3"], ".js": ["node", "--perf-basic-prof"]}

# Of which the answer is about time waited.
WAITING = "off-cpu"


def cases():
    """Name, file, the argument that chooses the bottleneck, the metric, and what the first three
    lines have to name: as a comment in the file says it."""
    line = re.compile(r"(?://|#) CULPRIT (\S+) (on-cpu|off-cpu) (\S+)")
    for file in sorted(PROGRAMS.iterdir()):
        for name, metric, culprit in line.findall(file.read_text(errors="replace")):
            yield f"{file.stem}/{name}", file, name, metric, culprit


def build(file, folder, suffix=""):
    """The command that runs a file, or why there is none."""
    if file.suffix in RUNNERS:
        runner = RUNNERS[file.suffix]
        return (runner + [str(file)], None) if shutil.which(runner[0]) else (None, f"no {runner[0]}")
    program = os.path.join(folder, file.stem + suffix)
    if os.path.exists(program):
        return [program], None
    command = COMPILERS[file.suffix](str(file), program)
    if not shutil.which(command[0]):
        return None, f"no {command[0]}"
    environment = dict(os.environ, GOFLAGS="-mod=mod", GO111MODULE="off", GOCACHE=folder + "/go")
    built = subprocess.run(command, capture_output=True, text=True, env=environment)
    return ([program], None) if built.returncode == 0 else (None, built.stderr.strip()[-300:])


class Running:
    """A program that runs until the end of the block."""

    def __init__(self, command, folder):
        self.command, self.folder = command, folder

    def __enter__(self):
        self.process = subprocess.Popen(self.command, cwd=self.folder, stdout=subprocess.DEVNULL)
        time.sleep(1)
        assert self.process.poll() is None, f"{self.command} has ended"
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def name_culprits(wanted):
    found, lines_of, skipped = 0, [], {}
    with tempfile.TemporaryDirectory() as folder:
        for name, file, argument, metric, culprit in cases():
            if wanted and not any(part in name for part in wanted):
                continue
            command, why = build(file, folder)
            if command is None:
                skipped[file.name] = why
                continue
            with Running(command + [argument], folder) as pid:
                answer = subprocess.run(
                    [PROFTOP, "-b", "-n", "1", "-d", str(SECONDS), "-p", str(pid), "--metric", metric,
                     "--format", "md", "--budget-tokens", str(TOKENS)],
                    capture_output=True, text=True)
            first = answer.stdout.splitlines()[:3]
            is_short = len(answer.stdout) <= 3 * TOKENS
            is_named = re.search(culprit, "\n".join(first)) is not None and is_short
            found += is_named
            lines_of.append(name)
            print(f"{'named ' if is_named else 'MISSED'} {name}: {culprit}", flush=True)
            if not is_named:
                print("    " + "\n    ".join(first + answer.stderr.splitlines()[:3]))
    for file, why in skipped.items():
        print(f"skipped: {file}: {why}")
    print(f"{found} of {len(lines_of)} are named in the first three lines")
    return 0


def record(command, folder, file, seconds, options):
    with Running(command, folder) as pid:
        subprocess.run([PROFTOP, "record", "-d", f"{seconds}s", "-p", str(pid), "-f", "-o", file, *options],
                       capture_output=True, check=True)


def difference(files):
    """The lines of the answer; the second one says whether there is a difference."""
    answer = subprocess.run([PROFTOP, "diff", *files, "--format", "md"], capture_output=True, text=True)
    return answer.stdout.splitlines() + ["", ""]


def planted():
    source = PROGRAMS / "steps.c"
    with tempfile.TemporaryDirectory() as folder:
        programs = {}
        for extra in (0, 10):
            programs[extra] = os.path.join(folder, f"steps{extra}")
            subprocess.run(["cc", "-O2", "-g", f"-DEXTRA={extra}", "-o", programs[extra], source], check=True)
        for mode, arguments in (("as fast as it can", []), ("every 4 ms", ["paced"])):
            found = same = 0
            for _ in range(PAIRS):
                files = []
                # The two that are alike, and the one with more.
                for number, extra in enumerate((0, 0, 10)):
                    files.append(os.path.join(folder, f"{number}.pft"))
                    record([programs[extra]] + arguments, folder, files[-1], PLANTED_SECONDS, ["-F", str(PLANTED_HZ)])
                same += difference(files[:2])[1].startswith("No difference")
                # Against the first and the second run.
                for before in files[:2]:
                    sure = "\n".join(difference([before, files[2]])).split("Could be chance")[0]
                    found += re.search(r"^1?[0-9]\. `parse` .* \+", sure, re.M) is not None
            print(f"{mode}: a tenth more is found in {found} of {2 * PAIRS}, "
                  f"no difference in {same} of {PAIRS} alike", flush=True)
    return 0


def same_builds(wanted):
    same = pairs = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, file, argument, metric, _ in cases():
            names = wanted or ["native/crunch", "native/sort", "native/lock", "rows/count", "scripts/score"]
            if name not in names:
                continue
            for pair in range(PAIRS):
                files = []
                for side in "ab":
                    command, why = build(file, folder, side)
                    if command is None:
                        print(f"skipped: {name}: {why}")
                        break
                    files.append(os.path.join(folder, f"{side}.pft"))
                    record(command + [argument], folder, files[-1], SECONDS, ["--metric", metric])
                if len(files) < 2:
                    break
                second = difference(files)[1]
                is_same = second.startswith("No difference")
                same += is_same
                pairs += 1
                if not is_same:
                    print(f"    {name}: {second}")
            print(f"{name}: {same} of {pairs} so far", flush=True)
    print(f"no difference in {same} of {pairs} pairs of identical builds")
    return 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if "--planted" in arguments:
        sys.exit(planted())
    if "--same" in arguments:
        arguments.remove("--same")
        sys.exit(same_builds(arguments))
    sys.exit(name_culprits(arguments))
