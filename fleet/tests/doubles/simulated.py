"""The double of Pyroscope for the simulation of many hosts: it prints its port, and then does what lines say.

    down     every request is answered with 503
    up       requests are checked and taken
    time MS  it is that time, in ms since 1970
    seconds  how many requests were taken in each second since the last `seconds`
    report   what was taken
    check N  from now on one of N profiles is checked in whole, and of the others only the values are added up

Each line is answered with one line. Of what is taken only the sums are kept.
"""

import itertools
import json
import sys
import time
from collections import Counter

import messages
import server


class Simulated(server.Double):
    def __init__(self):
        self.is_down = False
        self.numbers = itertools.count()
        self.one_of = 1
        super().__init__(idle=2)

    def check_pprof(self, packed):
        """Checks one of `one_of` profiles in whole, and adds up the values of the others."""
        is_checked = next(self.numbers) % self.one_of == 0
        return super().check_pprof(packed) if is_checked else messages.sum_pprof(packed)

    def handle(self, handler):
        if self.is_down:
            handler.rfile.read(int(handler.headers["Content-Length"]))
            return self.answer(handler, 503, b"down")
        return super().handle(handler)

    def read(self, handler, body):
        return [(uuid, None, None, {"": sum(stacks.values())}) for uuid, *_, stacks in super().read(handler, body)]

    def seconds(self):
        with self.lock:
            requests, self.requests = self.requests, []
            self.headers.clear()
        taken = Counter(int(at) for at, status in requests if status == 200)
        return [taken[it] for it in range(min(taken, default=0), max(taken, default=-1) + 1)]

    def report(self):
        with self.lock:
            return {
                "profiles": len(self.taken),
                "deliveries": self.deliveries,
                "samples": sum(it[2][""] for it in self.taken.values()),
                "wrong": self.wrong[:3],
            }


def main():
    double = Simulated()
    print(double.port, flush=True)
    for line in sys.stdin:
        word, *more = line.split()
        answer = None
        if word in ("down", "up"):
            double.is_down = word == "down"
        elif word == "time":
            now = int(more[0]) / 1000
            double.now = lambda now=now: now
        elif word == "check":
            double.one_of = int(more[0])
        elif word == "seconds":
            answer = double.seconds()
        elif word == "report":
            answer = {**double.report(), "cpu_s": time.process_time()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
