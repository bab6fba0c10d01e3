"""Threads with names of all kinds, which run without an end. Writes down since when all of them
have their names, then their numbers and names: the first thread's is that of the kernel.

    names.py OUT
"""

import concurrent.futures
import ctypes
import os
import sys
import threading
import time

OUT = sys.argv[1]
TOLD = {}
READY = threading.Event()


def run(told=None):
    TOLD[threading.get_native_id()] = told or threading.current_thread().name
    READY.wait()
    while True:
        sum(range(1000))


class Many(threading.Thread):
    """More attributes than objects of one class share names of."""

    def __init__(self):
        for number in range(100):
            setattr(self, "before_%d" % number, number)
        super().__init__(target=run, name="one with many attributes", daemon=True)


class Other(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.name = "one that was renamed"

    def run(self):
        run()


def start(thread):
    thread.daemon = True
    thread.start()
    return thread


def of_the_kernel():
    libc = ctypes.CDLL(None)
    libc.prctl(15, b"of-the-kernel", 0, 0, 0)
    run("of-the-kernel")


start(threading.Thread(target=run, name="a name of more than fifteen letters"))
start(threading.Thread(target=run, name="na\xefve \u03bb \U0001f40d"))
start(Many())
start(Other())
touched = threading.Thread(target=run, name="one whose dict was seen")
assert touched.__dict__["_name"] == touched.name
start(touched)
start(threading.Thread(target=of_the_kernel, name="has two names"))
pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="pool")
pool.submit(run)
while len(TOLD) < 7:
    pass
with open("/proc/self/comm") as comm:
    TOLD[os.getpid()] = comm.read().strip()
with open(OUT + ".new", "w") as out:
    out.write("%d\n" % time.monotonic_ns())
    for tid, name in TOLD.items():
        out.write("%d\t%s\n" % (tid, name))
os.rename(OUT + ".new", OUT)
READY.set()
while True:
    sum(range(1000))
