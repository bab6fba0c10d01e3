#!/usr/bin/env python3
"""Measures probes: how soon the first number is on the screen, and whether programs at work
survive hundreds of them. See README.md.

    cargo build --release -p proftop --bins
    sudo bench/probes.py first_number [FILE]     # FILE: a large library, such as rustc's libLLVM
    sudo bench/probes.py rounds [ROUNDS]         # PostgreSQL, Go, Node, Java; 500 each
    sudo bench/probes.py stacks [SECONDS]        # are stacks whole while 20 return probes are on?
"""

import glob
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
PROFTOP = os.environ.get("PROFTOP", str(TARGET / "release/proftop"))
PROGRAMS = HERE.parent / "tui/tests/programs"
CLEAN = os.environ | {"PROFTOP_CONFIG": "/dev/null", "XDG_STATE_HOME": "/dev/null", "TERM": "xterm"}

CALLER = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words) {
    void *library = dlopen(words[1], RTLD_NOW);
    void *(*make)(void) = library ? dlsym(library, words[2]) : 0;
    void (*end)(void *) = library ? dlsym(library, words[3]) : 0;
    if (!make || !end) { puts(dlerror()); return 1; }
    puts("ready"); fflush(stdout);
    for (;;) { for (int i = 0; i < 200; i++) end(make()); usleep(2000); }
}
"""


def first_number(library=None):
    """From `l` on a row to the first count on the screen, each time in a new proftop."""
    library = library or max(glob.glob("/root/.rustup/toolchains/*/lib/libLLVM.so*"), key=os.path.getsize)
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "caller.c"), Path(folder, "caller")
        source.write_text(CALLER)
        subprocess.run(["cc", "-o", program, source, "-ldl"], check=True)
        functions = ["LLVMContextCreate", "LLVMContextDispose"]
        caller = subprocess.Popen([program, library, *functions], stdout=subprocess.PIPE, text=True)
        assert caller.stdout.readline() == "ready\n"
        times = [seconds_to_number(caller.pid, functions[0]) * 1e3 for _ in range(11)]
        caller.kill()
    print(f"{library}, {os.path.getsize(library) / 1e6:.0f} MB: first number after "
          f"{statistics.median(times):.0f} ms ({min(times):.0f} to {max(times):.0f})")


def seconds_to_number(pid, function):
    """Drives the screen in a terminal of 100x30."""
    tmux = ["tmux", "-L", f"bench-{os.getpid()}", "-f", "/dev/null"]
    start = [f"{name}={CLEAN[name]}" for name in ("PROFTOP_CONFIG", "XDG_STATE_HOME")]
    subprocess.run([*tmux, "new-session", "-d", "-x", "100", "-y", "30",
                    *("env", *start, PROFTOP, "--fresh", "-p", str(pid))], check=True)

    def keys(*names):
        subprocess.run([*tmux, "send-keys", *names], check=True)

    def wait_for(wanted, seconds=60):
        end = time.monotonic() + seconds
        while wanted not in (shown := subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True).stdout):
            assert time.monotonic() < end, f"no {wanted} on the screen:\n{shown}"

    try:
        wait_for(function)
        keys("/", *function, "Enter")
        wait_for("> ")
        time.sleep(1)
        begun = time.monotonic()
        keys("l")
        wait_for("calls in ")
        return time.monotonic() - begun
    finally:
        subprocess.run([*tmux, "send-keys", "q"], check=False)
        time.sleep(1)
        subprocess.run([*tmux, "kill-server"], check=False, capture_output=True)


class Worker:
    """A program that works out the same again and again, a line each time."""

    def __init__(self, name, folder, command):
        self.name, self.results = name, Path(folder, name + ".results")
        self.process = subprocess.Popen(command, stdout=self.results.open("wb"), cwd=folder)
        self.pid = self.process.pid
        self.before = changed_code(self.pid)

    def wrong(self):
        lines = self.results.read_text().splitlines()
        assert len(lines) > 2, f"{self.name} has worked nothing out"
        return len(lines), sum(line != lines[0] for line in lines)

    def crashes(self):
        return int(self.process.poll() is not None)

    def end(self):
        self.process.kill()


class Database:
    """PostgreSQL, and clients that stop at the first answer that is wrong."""

    SUM = "md5(string_agg(aid::text || abalance, ',' ORDER BY bid, filler, aid DESC))"
    ROWS = "pgbench_accounts WHERE aid BETWEEN 100 AND 600"

    def __init__(self, folder):
        self.name, self.folder = "postgres", Path(folder, "database")
        self.folder.mkdir()
        os.chown(self.folder, 65534, 65534)
        self.programs = max(Path("/usr/lib/postgresql").glob("*/bin/pgbench")).parent
        data = str(self.folder / "data")
        self.run("initdb", "-D", data, "-A", "trust", "-U", "test")
        self.log = (self.folder / "log").open("wb")
        self.server = subprocess.Popen(
            self.words("postgres", "-D", data, "-k", str(self.folder), "-c", "listen_addresses=", "-c", "fsync=off"),
            stderr=self.log, cwd=self.folder)
        self.pid = self.server.pid
        while self.run("pg_isready", "-q", "-U", "test", check=False).returncode:
            time.sleep(0.1)
        self.run("pgbench", "-i", "-q", "-s", "2", "-U", "test", "postgres")
        right = self.run("psql", "-U", "test", "-At", "-c", f"SELECT {self.SUM} FROM {self.ROWS}", "postgres")
        script = self.folder / "checked.sql"
        script.write_text(f"SELECT 1 / ({self.SUM} = '{right.stdout.strip()}')::int FROM {self.ROWS};\n")
        self.clients = subprocess.Popen(
            self.words("pgbench", "-n", "-c", "4", "-j", "2", "-T", "100000", "-P", "1", "-f", str(script), "-U", "test",
                       "postgres"),
            stderr=(self.folder / "clients").open("wb"), stdout=subprocess.DEVNULL, cwd=self.folder,
            env=os.environ | {"PGHOST": str(self.folder)})
        self.before = changed_code(self.pid)

    def words(self, name, *words):
        return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(self.programs / name), *words]

    def run(self, *words, check=True):
        return subprocess.run(self.words(*words), check=check, capture_output=True, text=True, cwd=self.folder,
                              env=os.environ | {"PGHOST": str(self.folder)})

    def wrong(self):
        said = (self.folder / "clients").read_text()
        rates = [float(rate) for rate in re.findall(r"([\d.]+) tps", said)]
        return int(sum(rates)), said.count("aborted") + said.count("ERROR")

    def crashes(self):
        log = (self.folder / "log").read_text()
        return log.count("terminated by signal") + int(self.server.poll() is not None)

    def end(self):
        self.clients.kill()
        self.server.terminate()


def changed_code(pid):
    """Files whose code is not in memory as it is in the file."""
    changed = []
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in open(f"/proc/{pid}/maps"):
            fields = line.split(maxsplit=5)
            if fields[1] != "r-xp" or len(fields) < 6 or not os.path.exists(path := fields[5].strip()):
                continue
            start, end = (int(number, 16) for number in fields[0].split("-"))
            with open(path, "rb") as file:
                file.seek(int(fields[2], 16))
                code = file.read(end - start)
            memory.seek(start)
            # The last page may go beyond the end of the file.
            if memory.read(len(code)) != code:
                changed.append(path)
    return changed


def exported(path, fits=lambda name: True):
    said = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    names = [line.split()[2].split("@")[0] for line in said.splitlines() if " T " in line]
    return [f"{Path(path).name}!{name}" for name in names if fits(name)]


def rounds(count="500"):
    """Probes on random functions, placed and taken away, on programs under load."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        go = Path(folder, "worker")
        subprocess.run(["go", "build", "-ldflags=-s -w", "-o", go, PROGRAMS / "worker.go"], check=True,
                       env=os.environ | {"GO111MODULE": "off"})
        subprocess.run(["javac", "-d", folder, PROGRAMS / "Worker.java"], check=True)
        node = os.path.realpath(shutil.which("node"))
        java = Path(os.path.realpath(shutil.which("java"))).parent.parent / "lib/server/libjvm.so"
        database = Database(folder)
        libc = ["libc.so.6!" + name for name in ("malloc", "free", "realloc", "memcpy", "pthread_mutex_lock")]
        targets = [
            (database, [f"postgres!{name}" for name in ("palloc", "pfree", "ExecutorRun", "LWLockAcquire", "raw_parser")],
             exported(str(database.programs / "postgres"))),
            (Worker("go", folder, [go]),
             ["main.grow", "main.mix", "main.collect", "main.(*shelf).put", "runtime.mallocgc", "runtime.makeslice",
              "runtime.chansend", "runtime.newproc", "runtime.growslice", "runtime.mapassign_faststr"], []),
            (Worker("node", folder, ["node", str(PROGRAMS / "worker.js")]),
             libc + ["EVP_DigestUpdate", "deflate", "inflate", "uv__io_poll"],
             exported(node, lambda name: not name.startswith("_Z"))),
            (Worker("java", folder, ["java", "-Xmx128m", "-cp", folder, "Worker"]),
             libc + ["libz.so.1!deflate", "libz.so.1!inflate", "libjvm.so!JVM_StartThread"], exported(str(java))),
        ]
        time.sleep(3)
        def run(target, hot, others):
            begun = time.monotonic()
            placed, refused, left = probe_in_rounds(target.pid, int(count), hot, others)
            took = time.monotonic() - begun
            done, wrong = target.wrong()
            end = time.monotonic() + 30
            while (changed := changed_code(target.pid)) != target.before and time.monotonic() < end:
                time.sleep(0.2)
            print(f"{target.name}: {count} rounds in {took:.0f} s, {placed} probes placed, {refused} refused; "
                  f"{target.crashes()} crashes, {done} results of which {wrong} wrong, "
                  f"{int(changed != target.before)} leftovers, {left} probes listed at the end", flush=True)

        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda target: run(*target), targets))
        for target, _, _ in targets:
            target.end()


def probe_in_rounds(pid, count, hot, others):
    """Each round has one to three probes, of which half are on what is called often."""
    dialog = subprocess.Popen([PROFTOP, "--plain", "-p", str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True, env=CLEAN | {"TERM": "dumb"})

    def ask(line):
        dialog.stdin.write(f"{line}\nendofanswer\n")
        dialog.stdin.flush()
        said = ""
        while "'endofanswer'" not in said:
            more = dialog.stdout.readline()
            assert more, said
            said += more
        return said

    chance, placed, refused = random.Random(19), 0, 0
    for _ in range(count):
        for _ in range(chance.randint(1, 3)):
            names = others if others and chance.random() < 0.5 else hot
            said = ask(f"probe {chance.choice(names)}")
            if " is on " in said or "was taken away" in said:
                placed += 1
            else:
                refused += 1
        ask("unprobe all")
    left = len(re.findall(r"^ *\d+ +probe ", ask("probes"), re.M))
    dialog.stdin.close()
    dialog.wait()
    return placed, refused, left


def stacks(seconds="20"):
    """How many stacks of PostgreSQL are whole, without probes and with twenty at returns."""
    functions = ["palloc", "pfree", "AllocSetAlloc", "AllocSetFree", "ExecutorRun", "LWLockAcquire", "LWLockRelease",
                 "raw_parser", "ExecProcNode", "ExecScan", "hash_search", "hash_search_with_hash_value", "bms_add_member",
                 "ReadBufferExtended", "ReleaseBuffer", "SearchSysCache1", "planner", "standard_planner", "heap_getnext",
                 "exec_simple_query", "PortalRun", "index_getnext_slot", "_bt_search", "_bt_compare", "tuplesort_performsort",
                 "slot_getsomeattrs_int", "ExecInterpExpr", "MemoryContextAlloc"]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        database = Database(folder)
        there = exported(str(database.programs / "postgres"))
        twenty = [name for name in (f"postgres!{function}" for function in functions) if name in there][:20]
        assert len(twenty) == 20, twenty
        time.sleep(2)
        for probes in ([], twenty):
            file = Path(folder, f"{len(probes)}.pft")
            words = [word for name in probes for word in ("--probe", name)]
            if probes:
                words += ["--max-cost", "1000", "--max-hits", "100000000"]
            subprocess.run([PROFTOP, "record", "-p", str(database.pid), "-F", "999", "-d", f"{seconds}s", "-o", file, *words],
                           check=True, env=CLEAN, stderr=subprocess.DEVNULL)
            # At first the tables of the program are being read.
            for when, last in (("all", ()), ("later", ("--last", f"{int(seconds) - 2}s"))):
                said = subprocess.run([PROFTOP, "report", file, "--format", "json", *last], check=True, env=CLEAN,
                                      capture_output=True)
                report = json.loads(said.stdout)
                whole, walked = report["whole"], report["user_stacks"]
                print(f"{len(probes)} probes, {when}: {whole} of {walked} stacks are whole, {whole / walked:.2%}; "
                      f"{report['endings']}")
            said = subprocess.run([PROFTOP, "report", file, "--probes", "--format", "json"], env=CLEAN, capture_output=True)
            if probes:
                probes = json.loads(said.stdout)["probes"]
                print(f"{sum(probe['count'] for probe in probes)} calls, {sum(bool(probe['removed']) for probe in probes)} "
                      "probes taken away before the end")
        database.end()


if __name__ == "__main__":
    part = sys.argv[1] if len(sys.argv) > 1 else "first_number"
    globals()[part](*sys.argv[2:])
