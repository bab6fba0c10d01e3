"""Two functions that take three quarters and one quarter of the time, and a callback from C."""

import sys
import time


def burn(nanoseconds):
    end = time.thread_time_ns() + nanoseconds
    count = 0
    while time.thread_time_ns() < end:
        count += 1
    return count


class Shop:
    def three_quarters(self):
        return burn(3_000_000)

    def one_quarter(self):
        return sorted([0], key=lambda _: burn(1_000_000))


def serve(seconds):
    shop = Shop()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        shop.three_quarters()
        shop.one_quarter()


serve(float(sys.argv[1]))
