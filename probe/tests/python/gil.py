"""Two threads that want the global lock: one has it for long, the other for moments.

    gil.py OUT

Writes down the numbers of both.
"""

import os
import sys
import threading
import time

TIDS = {}


def hold():
    TIDS["hold"] = threading.get_native_id()
    while True:
        # One instruction: nothing takes the lock away meanwhile.
        sum(range(1_000_000))


def want():
    TIDS["want"] = threading.get_native_id()
    while True:
        time.sleep(0.001)


threads = [threading.Thread(target=target, daemon=True) for target in (hold, want)]
for thread in threads:
    thread.start()
while len(TIDS) < 2:
    time.sleep(0.01)
with open(sys.argv[1] + ".new", "w") as out:
    out.write("%d %d" % (TIDS["hold"], TIDS["want"]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
threads[0].join()
