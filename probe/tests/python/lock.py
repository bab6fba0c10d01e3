"""A thread that runs Python code, or code that needs no Python and gives the global lock back.

    lock.py python|native
"""

import sys
import threading
import zlib

DATA = bytes(range(256)) * 4096


def run_python():
    while True:
        sum(range(10_000))


def run_native():
    while True:
        zlib.compress(DATA)


thread = threading.Thread(target={"python": run_python, "native": run_native}[sys.argv[1]])
thread.start()
thread.join()
