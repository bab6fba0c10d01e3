#!/usr/bin/env python3
"""Measures probes: how soon the first number is on the screen, and whether programs at work
survive hundreds of them. See README.md.

    cargo build --release -p proftop --bins
    sudo bench/probes.py first_number [FILE]     # FILE: a large library, such as rustc's libLLVM
    sudo bench/probes.py rounds [ROUNDS] [NAMES] # PostgreSQL, Go, Node, Java; 500 each
    sudo bench/probes.py many [SECONDS] [NAMES]  # 64 probes at once on each of the four
    sudo bench/probes.py peers [ROUNDS]          # bpftrace beside it: same counts? what does a hit cost?
    sudo bench/probes.py stacks [SECONDS]        # are stacks whole while 20 return probes are on?
"""

import glob
import json
import os
import random
import re
import shutil
import signal
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


ALL = "postgres,go,node,java"


def start(name, folder):
    """A program at work, functions of it that are called all the time, and others."""
    libc = ["libc.so.6!" + name for name in ("malloc", "free", "realloc", "memcpy", "pthread_mutex_lock")]
    if name == "postgres":
        database = Database(folder)
        return (database, [f"postgres!{name}" for name in ("palloc", "pfree", "ExecutorRun", "LWLockAcquire", "raw_parser")],
                exported(str(database.programs / "postgres")))
    if name == "go":
        go, named = Path(folder, "worker"), Path(folder, "named")
        for flags, path in (("-s -w", go), ("", named)):
            subprocess.run(["go", "build", f"-ldflags={flags}", "-o", path, PROGRAMS / "worker.go"], check=True,
                           env=os.environ | {"GO111MODULE": "off"})
        said = subprocess.run(["go", "tool", "nm", named], capture_output=True, text=True, check=True).stdout
        symbols = [line.split(maxsplit=2) for line in said.splitlines()]
        functions = [fields[2] for fields in symbols if len(fields) == 3 and fields[1] in "Tt"]
        return (Worker("go", folder, [go]),
                ["main.grow", "main.mix", "main.collect", "main.(*shelf).put", "runtime.mallocgc", "runtime.makeslice",
                 "runtime.chansend", "runtime.newproc", "runtime.growslice", "runtime.mapassign_faststr"],
                [name for name in functions if re.fullmatch(r"(runtime|sort|strings|bytes|crypto/\w+|fmt|os|sync|reflect)\.\w+", name)])
    if name == "node":
        node = os.path.realpath(shutil.which("node"))
        return (Worker("node", folder, ["node", str(PROGRAMS / "worker.js")]),
                libc + ["EVP_DigestUpdate", "deflate", "inflate", "uv__io_poll"],
                exported(node, lambda name: not name.startswith("_Z")))
    subprocess.run(["javac", "-d", folder, PROGRAMS / "Worker.java"], check=True)
    java = Path(os.path.realpath(shutil.which("java"))).parent.parent / "lib/server/libjvm.so"
    return (Worker("java", folder, ["java", "-Xmx128m", "-cp", folder, "Worker"]),
            libc + ["libz.so.1!deflate", "libz.so.1!inflate", "libjvm.so!JVM_StartThread"], exported(str(java)))


def verdict(target):
    """What has become of a program and of its work, when all probes are gone."""
    done, wrong = target.wrong()
    end = time.monotonic() + 30
    while (changed := changed_code(target.pid)) != target.before and time.monotonic() < end:
        time.sleep(0.2)
    return f"{target.crashes()} crashes, {done} results of which {wrong} wrong, {int(changed != target.before)} leftovers"


def rounds(count="500", names=ALL):
    """Probes on random functions, placed and taken away, on programs under load."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        targets = [start(name, folder) for name in names.split(",")]
        time.sleep(3)

        def run(target, hot, others):
            begun = time.monotonic()
            placed, refused, left = probe_in_rounds(target.pid, int(count), hot, others)
            took = time.monotonic() - begun
            print(f"{target.name}: {count} rounds in {took:.0f} s, {placed} probes placed, {refused} refused; "
                  f"{verdict(target)}, {left} probes listed at the end", flush=True)

        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda target: run(*target), targets))
        for target, _, _ in targets:
            target.end()


NO_LIMITS = ["--max-cost", "1000", "--max-hits", "100000000"]


def traced(pid, functions, seconds):
    """What so many seconds of probes on these functions have counted. Those that are not there are left out."""
    functions = list(functions)
    while functions:
        words = [PROFTOP, "trace", "--format", "json", "-p", str(pid), "-d", f"{seconds}s", *NO_LIMITS, *functions]
        said = subprocess.run(words, capture_output=True, text=True, env=CLEAN)
        if said.stdout:
            return json.loads(said.stdout)["probes"]
        missing = re.search(r"no function is called `(.*?)` in", said.stderr)
        if "there are 64 probes already" in said.stderr:
            # A name that several functions have.
            functions.pop()
            continue
        if not missing:
            print(said.stderr.strip(), file=sys.stderr)
            return []
        functions.remove(missing[1])
    return []


def many(seconds="60", names=ALL):
    """64 probes at once, timed, half of them on what is called often, one program at a time."""
    chance = random.Random(64)
    for name in names.split(","):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            target, hot, others = start(name, folder)
            time.sleep(3)
            # Some functions are refused, and of what is seldom called little is learnt.
            counts = {}
            candidates = hot + chance.sample(others, min(len(others), 300))
            for at in range(0, len(candidates), 48):
                counts |= {probe["function"]: probe["count"] for probe in traced(target.pid, candidates[at:at + 48], 1)}
                if sum(count > 0 for count in counts.values()) >= 60 or len(counts) >= 500:
                    break
            chosen = sorted(counts, key=counts.get, reverse=True)[:64]
            before = target.wrong()[0]
            probes = traced(target.pid, chosen, seconds)
            during = target.wrong()[0] - before
            calls = sum(probe["count"] for probe in probes)
            called = sum(probe["count"] > 0 for probe in probes)
            print(f"{name}: {len(probes)} probes for {seconds} s, {called} of them hit, {calls} calls, {during} results meanwhile; "
                  f"{verdict(target)}", flush=True)
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


# Functions by their first instructions, each of which the kernel treats in another way.
ASSEMBLY = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define FUNCTION(name, first, last) __asm__(".text\n.balign 16\n.globl " #name "\n.type " #name ",@function\n" #name ":\n" \
    first "\n lea 1(%rdi),%rax\n" last "\n ret\n.size " #name ",.-" #name "\n"); long name(long)
FUNCTION(pushed, "push %rbp", "pop %rbp");
FUNCTION(marked, "endbr64\n push %rbp", "pop %rbp");
FUNCTION(branched, "test %rdi,%rdi\n je 1f", "1:");
FUNCTION(later, "lea 1(%rdi),%rdi\n nop", "");
FUNCTION(stepped, "lea 1(%rdi),%rdi", "");
static double now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
int main(int count, char **words) {
    long calls = atol(words[1]), sum = 0;
    struct { const char *name; long (*call)(long); } all[] = {{"pushed", pushed}, {"marked", marked}, {"branched", branched}, {"later", later}, {"stepped", stepped}};
    for (int i = 0; i < 5; i++) {
        double best = 1e18;
        for (int part = 0; part < 50; part++) {
            double begun = now();
            for (long call = 0; call < calls / 50; call++) sum += all[i].call(call + 1);
            double took = (now() - begun) / (calls / 50);
            if (took < best) best = took;
        }
        fprintf(stderr, "%s %.1f\n", all[i].name, best);
    }
    return sum == 0;
}
"""

BPFTRACE = os.environ.get("BPFTRACE", "bpftrace")
SHAPES = ["pushed", "marked", "branched", "later", "stepped"]


def own_times(said):
    return {name: float(ns) for name, ns in re.findall(r"^(pushed|marked|branched|later|stepped) ([\d.]+)$", said, re.M)}


def peers(rounds="7", calls="200000"):
    """The same functions of one program under both, in turns: what each hit costs, by the CPU time of the program."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "shapes.c"), Path(folder, "shapes")
        source.write_text(ASSEMBLY)
        subprocess.run(["cc", "-O1", "-o", program, source], check=True)

        def ours(*more):
            words = [PROFTOP, "trace", "--format", "json", "--no-children", *NO_LIMITS, *more, ",".join(SHAPES), "--", program, calls]
            said = subprocess.run(words, capture_output=True, text=True, env=CLEAN, check=True)
            counts = {probe["function"]: probe["count"] for probe in json.loads(said.stdout)["probes"]}
            return own_times(said.stderr), counts

        def theirs(script):
            said = subprocess.run([BPFTRACE, "-c", f"{program} {calls}", "-e", script], capture_output=True, text=True, check=True)
            counts = {name: int(count) for name, count in re.findall(r"^@(\w+): (\d+)$", said.stdout, re.M)}
            return own_times(said.stderr + said.stdout), counts

        count = " ".join(f"uprobe:{program}:{name} {{ @{name} = count(); }}" for name in SHAPES)
        timed = " ".join(f"uprobe:{program}:{name} {{ @{name} = count(); @s[{at}, tid] = nsecs; }} "
                         f"uretprobe:{program}:{name} /@s[{at}, tid]/ {{ @h{name} = hist(nsecs - @s[{at}, tid]); delete(@s[{at}, tid]); }}"
                         for at, name in enumerate(SHAPES))
        runs = {"bare": lambda: (own_times(subprocess.run([program, calls], capture_output=True, text=True).stderr), {}),
                "ours": lambda: ours("--count"), "theirs": lambda: theirs(count),
                "ours timed": ours, "theirs timed": lambda: theirs(timed)}
        times = {name: {shape: [] for shape in SHAPES} for name in runs}
        unequal = 0
        for _ in range(int(rounds)):
            for name, run in runs.items():
                own, counts = run()
                for shape in SHAPES:
                    times[name][shape].append(own[shape])
                    unequal += name != "bare" and counts.get(shape) != int(calls)
        print(f"{rounds} rounds of {calls} calls: {unequal} counts that are not the program's own")
        for shape in SHAPES:
            cost = {name: statistics.median(times[name][shape]) - statistics.median(times["bare"][shape]) for name in runs}
            print(f"{shape}: counted {cost['ours']:.0f} ns, bpftrace {cost['theirs']:.0f} ns, ratio {cost['ours'] / cost['theirs']:.2f}; "
                  f"timed {cost['ours timed']:.0f} ns, bpftrace {cost['theirs timed']:.0f} ns, "
                  f"ratio {cost['ours timed'] / cost['theirs timed']:.2f}", flush=True)
    peers_on_postgres()


def peers_on_postgres():
    """Both at once on the same functions of PostgreSQL, while pgbench does so many transactions."""
    names = ["palloc", "pfree", "AllocSetAlloc", "ExecutorRun", "LWLockAcquire", "LWLockRelease", "raw_parser", "hash_search",
             "SearchSysCache1", "planner", "PortalRun", "heap_update", "XLogInsert", "ReadBufferExtended", "_bt_search",
             "exec_simple_query", "errstart", "StartTransaction", "CommitTransactionCommand", "bms_add_member"]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        database = Database(folder)
        database.clients.kill()
        database.clients.wait()
        program = str(database.programs / "postgres")
        there = [name.split("!")[1] for name in exported(program)]
        names = [name for name in names if name in there]
        script = " ".join(f"uprobe:{program}:{name} {{ @{name} = count(); }}" for name in names)
        # They would call functions while only one of both is there.
        aside = subprocess.run(["pgrep", "-P", str(database.pid)], capture_output=True, text=True).stdout.split()
        for pid in aside:
            os.kill(int(pid), signal.SIGSTOP)
        other = subprocess.Popen([BPFTRACE, "-e", "BEGIN { printf(\"ready\\n\"); } " + script], stdout=subprocess.PIPE, text=True)
        while "ready" not in other.stdout.readline():
            pass
        words = [PROFTOP, "trace", "--count", "--format", "json", *NO_LIMITS, "-d", "1h", "-p", str(database.pid),
                 *(f"postgres!{name}" for name in names)]
        own = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=CLEAN)
        time.sleep(8)
        database.run("pgbench", "-n", "-c", "4", "-j", "2", "-t", "500", "-U", "test", "postgres")
        time.sleep(2)
        own.send_signal(signal.SIGINT)
        ours = {probe["function"]: probe["count"] for probe in json.loads(own.communicate()[0])["probes"]}
        other.send_signal(signal.SIGINT)
        theirs = {name: int(count) for name, count in re.findall(r"^@(\w+): (\d+)$", other.communicate()[0], re.M)}
        same = [name for name in ours if ours[name] == theirs.get(name, 0)]
        for pid in aside:
            os.kill(int(pid), signal.SIGCONT)
        print(f"PostgreSQL, 2000 transactions: {len(same)} of {len(ours)} functions have the same count, {sum(ours.values())} calls")
        for name in sorted(set(ours) - set(same)):
            print(f"  {name}: {ours[name]}, bpftrace {theirs.get(name, 0)}")
        database.end()


if __name__ == "__main__":
    part = sys.argv[1] if len(sys.argv) > 1 else "first_number"
    globals()[part](*sys.argv[2:])
