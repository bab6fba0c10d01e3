#!/usr/bin/env python3
"""Whether a flight recorder has the function that kept a server from answering: see README.md.

    cargo build --release -p proftop
    sudo bench/recorder_stall.py [--rate 19] [--stalls 20] [--servers 4] [--wait 20-40] [--millis 200]
    sudo bench/recorder_stall.py --kills 20        what is left of a ring after kill -9
    sudo bench/recorder_stall.py --cost 120        what a recorder takes, idle and beside a load

Servers mostly sleep, and handle small requests of three functions. Once in a while, at a random
moment, one request takes 200 ms in a function that nothing else calls. When it is over, the
server itself tells `proftop agent`, by its control socket, as a service does that sees a slow
request. In what was saved, of the two seconds before that moment and of that process, the guilty
function has to be among the first three. Time is compressed: a stall every half a minute, not
every ten.
"""

import argparse
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "lean")]
from watch import Watched  # noqa: E402

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
PROFTOP = os.environ.get("PROFTOP", str(TARGET / "release/proftop"))
GUILTY = "wait_for_lock"

SERVER = r"""
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static inline __attribute__((always_inline)) void burn(double seconds) {
    for (double end = cpu() + seconds; cpu() < end;)
        for (int i = 0; i < 20000; i++) sink += i;
}

#define STAGE(name) static __attribute__((noinline, noipa)) void name(double s) { burn(s); sink++; }
STAGE(parse_request) STAGE(query_cache) STAGE(render_page) STAGE(wait_for_lock)

static __attribute__((noinline)) void handle_request(void) {
    parse_request(0.0001); query_cache(0.0001); render_page(0.0002);
    sink++;
}

static __attribute__((noinline)) void handle_slow_request(double seconds) {
    wait_for_lock(seconds);
    sink++;
}

static void tell(const char *path) {
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    static char answer[4097];
    memset(answer, 0, sizeof answer);
    strncpy(to.sun_path, path, sizeof to.sun_path - 1);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(s, (struct sockaddr *)&to, sizeof to) || write(s, "save slow request\n", 18) != 18) { perror("tell"); exit(1); }
    size_t length = 0;
    for (ssize_t n; length < sizeof answer - 1 && (n = read(s, answer + length, sizeof answer - 1 - length)) > 0;) length += n;
    close(s);
    printf("%.*s\n", (int)strcspn(answer, "\n"), answer);
    fflush(stdout);
}

int main(int argc, char **argv) {
    double least = atof(argv[2]), most = atof(argv[3]), stall = atof(argv[4]);
    int stalls = atoi(argv[5]);
    srandom(atoi(argv[6]));
    while (stalls--) {
        double wait = least + (most - least) * random() / RAND_MAX;
        struct timespec now, end, pause = { 0, 10000000 };
        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_sec += (long)wait; end.tv_nsec += (wait - (long)wait) * 1e9;
        do {
            handle_request();
            nanosleep(&pause, 0);
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while (now.tv_sec + now.tv_nsec / 1e9 < end.tv_sec + end.tv_nsec / 1e9);
        handle_slow_request(stall);
        tell(argv[1]);
    }
    return 0;
}
"""


def command(folder, rate, options=()):
    return [PROFTOP, "agent", "-F", rate, "-o", f"{folder}/ring.pft", "--control", f"{folder}/control",
            "--saves", 1000, "--save-on", "cpu>99% for 60s", *options]


def status(folder):
    out = subprocess.run([PROFTOP, "agent", "status", "--json", "--control", f"{folder}/control"],
                         capture_output=True, text=True)
    return json.loads(out.stdout) if out.stdout else None


def agent(folder, rate, options=()):
    words = [str(word) for word in command(folder, rate, options)]
    process = subprocess.Popen(words, stderr=open(f"{folder}/said", "w"))
    while not Path(f"{folder}/control").exists() or not Path(f"{folder}/ring.pft").exists():
        if process.poll() is not None:
            raise SystemExit(Path(f"{folder}/said").read_text())
        time.sleep(0.1)
    return process


def functions(path, comm, last):
    """The functions of a program at the end of a recording, with their samples, most first."""
    out = subprocess.run([PROFTOP, "report", path, "--format", "json", "--last", last, "--filter", f"comm:{comm}"],
                         capture_output=True, text=True)
    if not out.stdout.strip():
        print(f"{comm}: no report: {out.returncode} {out.stderr}", end="")
        return []
    report = json.loads(out.stdout.splitlines()[-1])
    if not report["functions"]:
        print(f"{comm}: no samples: {report['notes']}")
    return [(row["name"], row["self"]) for row in report["functions"]]


def serve(folder, number, arguments):
    least, most = arguments.wait
    count = arguments.stalls // arguments.servers + (number < arguments.stalls % arguments.servers)
    name = f"server{number}"
    program = f"{folder}/{name}"
    subprocess.run(["cp", f"{folder}/server", program], check=True)
    words = [program, f"{folder}/control", least, most, arguments.millis / 1000, count, arguments.seed + number]
    results = []
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True) as server:
        for line in server.stdout:
            answer = json.loads(line)
            if not answer.get("saved"):
                print(f"{name}: {line}", end="")
                results.append((False, 0, None))
                continue
            rows = functions(answer["saved"], name, arguments.last)
            names = [row[0] for row in rows]
            place = names.index(GUILTY) + 1 if GUILTY in names else 0
            samples = dict(rows).get(GUILTY, 0)
            print(f"{name}: {GUILTY} is number {place} of {len(rows)}: {rows[:4]}", flush=True)
            results.append((True, place, samples))
    return results


def stalls(arguments):
    with tempfile.TemporaryDirectory() as folder:
        Path(f"{folder}/server.c").write_text(SERVER)
        subprocess.run(["cc", "-O2", "-g", "-o", f"{folder}/server", f"{folder}/server.c"], check=True)
        recorder = agent(folder, arguments.rate)
        try:
            with ThreadPoolExecutor(arguments.servers) as pool:
                runs = pool.map(lambda number: serve(folder, number, arguments), range(arguments.servers))
                results = [result for run in runs for result in run]
            print(subprocess.run([PROFTOP, "agent", "status", "--control", f"{folder}/control"],
                                 capture_output=True, text=True).stdout, end="")
        finally:
            recorder.send_signal(signal.SIGTERM)
            recorder.wait()
    found = [place for saved, place, _ in results if saved and 1 <= place <= 3]
    samples = [samples for _, _, samples in results if samples is not None]
    print(f"{arguments.rate} Hz, {arguments.millis} ms: saved {sum(r[0] for r in results)} of {len(results)}, "
          f"{GUILTY} among the first three in {len(found)}, first in {found.count(1)}; "
          f"its samples: least {min(samples)}, median {statistics.median(samples)}, most {max(samples)}")


def kills(arguments):
    """kill -9 at random moments: the ring can be read, and how much of its end is missing."""
    missing = []
    for number in range(arguments.kills):
        with tempfile.TemporaryDirectory() as folder:
            load = subprocess.Popen(["sh", "-c", "while :; do :; done"])
            recorder = agent(folder, 99, ["--ring", "10s"])
            time.sleep(random.uniform(3, 15))
            recorder.kill()
            killed = time.time()
            recorder.wait()
            load.kill()
            load.wait()
            out = subprocess.run([PROFTOP, "export", f"{folder}/ring.pft", f"{folder}/out.firefox.json"],
                                 capture_output=True, text=True)
            if out.returncode:
                print(f"{number}: {out.stderr}")
                missing.append(None)
                continue
            profile = json.loads(Path(f"{folder}/out.firefox.json").read_text())
            ends = [max(thread["samples"]["time"]) for thread in profile["threads"] if thread["samples"].get("time")]
            end = (profile["meta"]["startTime"] + max(ends)) / 1000
            missing.append(killed - end)
    read = [one for one in missing if one is not None]
    print(f"killed {len(missing)} times: {len(read)} rings can be read; of the end "
          f"{statistics.median(read):.2f} s are missing in the median, {max(read):.2f} s at most")


LOADS = {
    "idle": [],
    "computing": ["while :; do :; done", "while :; do :; done"],
    "busy": ["while :; do :; done", "while :; do :; done", "while :; do /bin/true; sleep 0.02; done"],
}


def cost(arguments):
    """CPU of the recorder and its processes by their control group; what BPF takes in the time of
    others is only in the recorder's own figure, which is that of the last moment. PSS of all of them."""
    for name, lines in LOADS.items():
        loads = [subprocess.Popen(["sh", "-c", line]) for line in lines]
        try:
            with tempfile.TemporaryDirectory() as folder, Watched(command(folder, arguments.rate)) as tool:
                time.sleep(30)
                before, began, pss = tool.look(), time.monotonic(), []
                # The agent is asked for its state only at the end: an answer every two seconds took 0.27 % of a CPU.
                while time.monotonic() < began + arguments.cost:
                    time.sleep(5)
                    pss.append(tool.pss() / 1e6)
                percent = 100 * (tool.look().cpu - before.cpu) / (time.monotonic() - began)
                last = status(folder)
                load = os.getloadavg()[0]
                print(f"{name}, {arguments.rate} Hz, {arguments.cost} s, load {load:.1f}: {percent:.2f}% of a CPU by "
                      f"the group, {last['cpu_percent']:.2f}% by its own count in the last moment; "
                      f"PSS {statistics.median(pss):.0f} MB, at most "
                      f"{max(pss):.0f}; ring {last['ring']['bytes'] / 1e3:.0f} kB for {last['ring']['seconds']:.0f} s, "
                      f"{last['samples']} samples, {last['lost']} lost", flush=True)
        finally:
            for load in loads:
                load.kill()
                load.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=19)
    parser.add_argument("--stalls", type=int, default=20)
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--wait", type=lambda text: [float(one) for one in text.split("-")], default=[20, 40])
    parser.add_argument("--millis", type=float, default=200)
    parser.add_argument("--last", default="2s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int)
    parser.add_argument("--cost", type=int)
    arguments = parser.parse_args()
    if arguments.kills:
        kills(arguments)
    elif arguments.cost:
        cost(arguments)
    else:
        stalls(arguments)


if __name__ == "__main__":
    main()
