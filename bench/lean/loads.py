"""What the machine does while tools look at it."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parent.parent.parent / "target"))
BURN = TARGET / "release/examples/burn"

PYTHON = """import json, re
d = {str(i): [i, str(i) * 3] for i in range(500)}
def turn(): re.findall('[0-9]+7', json.dumps(json.loads(json.dumps(d))))
"""
SHORT = "while :; do ls /usr/bin >/dev/null; grep -c a /etc/passwd >/dev/null; sleep 0.02; done"
UNIT = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int compare(const void *a, const void *b) {{ return strcmp(*(char **)a, *(char **)b); }}
int unit_{0}(char **words, int n) {{ qsort(words, n, sizeof *words, compare); for (int i = 0; i < n; i++)
  printf("%d %s\\n", i * {0}, words[i]); return n; }}
"""


@contextmanager
def running(*commands):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    started = [subprocess.Popen(list(map(str, command)), start_new_session=True, **quiet) for command in commands]
    try:
        yield [process.pid for process in started]
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def mixed():
    """python, make and short processes."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(12):
            Path(folder, f"unit_{number}.c").write_text(UNIT.format(number))
        Path(folder, "Makefile").write_text("all: $(patsubst %.c,%.o,$(wildcard *.c))\n")
        make = f"while :; do make -s -B -C {folder}; done"
        with running([sys.executable, "-c", PYTHON + "while True: turn()"], ["sh", "-c", make], ["sh", "-c", SHORT]):
            yield


@contextmanager
def nothing():
    yield


@contextmanager
def python_alone():
    """One Python program, whose pid is given."""
    with running([sys.executable, "-c", PYTHON + "while True: turn()"]) as [pid]:
        yield pid


@contextmanager
def burning(threads):
    with running([BURN, 3600, threads]):
        yield


def work():
    """CPU seconds of a piece of work of a Python program, which takes some 20 ms, so that at 999 Hz each
    has about as many samples. Of a hundred pieces it is that which nine are below: what else this
    machine does only adds to some of them."""
    timed = """import time
times = []
for _ in range(100):
    before = time.process_time_ns()
    for _ in range(30): turn()
    times.append(time.process_time_ns() - before)
print(sorted(times)[9] / 1e9)"""
    return float(subprocess.check_output([sys.executable, "-c", PYTHON + timed], text=True))


# C functions that call themselves through the interpreter and sorted().
NESTED = """import sys
sys.setrecursionlimit(10000)
def down(n): return sorted([n], key=lambda k: down(k - 1)) if n else sum(range(300000))
while True: down(60)
"""
DEEP = """#include <stdlib.h>
static volatile unsigned long sink;
__attribute__((noinline)) void leaf(void) { for (int i = 0; i < 200000; i++) sink += i * sink; }
__attribute__((noinline)) unsigned long down(int n) { char b[32]; b[n & 31] = n; if (!n) { leaf(); return sink; }
  unsigned long r = down(n - 1); return r + b[n & 31]; }
int main(void) { for (;;) down(300); }
"""
CPP = """#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <vector>
int main() { std::map<std::string, std::vector<int>> words; std::regex r("a+b"); words["a"].push_back(1);
  std::sort(words["a"].begin(), words["a"].end()); return std::regex_match("aab", r); }
"""
JAVA = """import java.util.*;
public class Load { static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
  public static void main(String[] a) { Map<String, Integer> m = new HashMap<>();
    for (long i = 0; ; i++) { m.merge("k" + i % 997, fib(12), Integer::sum); } } }
"""
NODE = """function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
for (let i = 0; ; i++) { fib(18); JSON.parse(JSON.stringify(Array.from({length: 200}, (_, i) => ({i, s: 'x' + i})))) }
"""
GO = """package main
import ("encoding/json"; "sort")
func main() { m := map[string][]int{}
  for i := 0; i < 300; i++ { m[string(rune(65 + i))] = []int{3, i, 2} }
  for i := 0; i < 8; i++ { go turn(m) }
  select {} }
func turn(m map[string][]int) { for { b, _ := json.Marshal(m); var n map[string][]int; json.Unmarshal(b, &n)
  for _, v := range n { sort.Ints(v) } } }
"""


def build(folder, name, text, *command):
    """Writes a source and compiles it; the command's `IN` and `OUT` are its names."""
    source = Path(folder, name)
    source.write_text(text)
    out = str(source.with_suffix(""))
    names = {"IN": str(source), "OUT": out}
    environment = os.environ | {"GOCACHE": folder + "/cache", "GO111MODULE": "off"}
    subprocess.run([names.get(word, word) for word in command], check=True, cwd=folder, env=environment,
                   stdout=subprocess.DEVNULL)
    return out


@contextmanager
def on_every_cpu(*command):
    with running(*[command] * os.cpu_count()):
        yield


def python_flat():
    return on_every_cpu(sys.executable, "-c", PYTHON + "while True: turn()")


def python_nested():
    return on_every_cpu(sys.executable, "-c", NESTED)


@contextmanager
def compiled(name, text, *command):
    with tempfile.TemporaryDirectory() as folder, on_every_cpu(build(folder, name, text, *command)):
        yield


@contextmanager
def clang(compiler):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "unit.cc")
        source.write_text(CPP)
        with on_every_cpu("sh", "-c", f"while :; do {compiler} -O2 -c {source} -o /dev/null; done"):
            yield


@contextmanager
def java():
    with tempfile.TemporaryDirectory() as folder:
        build(folder, "Load.java", JAVA, "javac", "IN")
        with on_every_cpu("java", "-XX:+PreserveFramePointer", "-Xmx256m", "-cp", folder, "Load"):
            yield


def deep_and_flat():
    """Programs whose stacks are of different kinds, as far as what they need is here."""
    yield "python", python_flat
    yield "python, nested", python_nested
    if shutil.which("cc"):
        yield "300 deep", lambda: compiled("deep.c", DEEP, "cc", "-O2", "-fomit-frame-pointer",
                                           "-fno-optimize-sibling-calls", "IN", "-o", "OUT")
    if compiler := shutil.which("clang++") or shutil.which("clang++-22"):
        yield "clang", lambda: clang(compiler)
    if shutil.which("javac"):
        yield "java", java
    if node := shutil.which("node"):
        yield "node", lambda: on_every_cpu(node, "-e", NODE)
    if shutil.which("go"):
        yield "Go", lambda: compiled("load.go", GO, "go", "build", "-o", "OUT", "IN")


DEEP_AND_FLAT = dict(deep_and_flat())
