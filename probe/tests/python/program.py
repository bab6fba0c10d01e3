"""Stands still on one random stack after the other, and writes down which and when.

    program.py SEED COUNT NANOSECONDS GO OUT

It begins when the file GO is there. A line of OUT is a thread's number, two times of
CLOCK_MONOTONIC, and the frames between them, the innermost first.
"""

import functools
import os
import random
import re
import sys
import threading
import time

SEED, COUNT, NANOSECONDS = (int(number) for number in sys.argv[1:4])
GO, OUT = sys.argv[4:6]
RESULTS = []
clock = time.monotonic_ns


def spin():
    frames = []
    frame = sys._getframe(0)
    while frame is not None:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        frames.append([name, code.co_filename, frame.f_lineno])
        frame = frame.f_back
    start = 0  # is set on the loop's line: who is preempted before it is not there yet
    end = clock() + NANOSECONDS
    while (now := clock()) < end: start = start or now  # noqa: the loop is on one line
    frames[0][2] = spin.__code__.co_firstlineno + 10
    RESULTS.append((threading.get_native_id(), start or end, end, frames))


def descend(path):
    if path:
        path[0](path[1:])
    else:
        spin()


def plain(path):
    descend(path)


def sort_key(path):
    sorted([0], key=lambda _: descend(path) or 0)


def generate(path):
    yield 1
    yield descend(path)


def generator(path):
    for _ in generate(path):
        pass


def delegate(path):
    yield from generate(path)


def delegated(path):
    list(delegate(path))


async def inner(path):
    descend(path)


async def outer(path):
    await inner(path)


def coroutine(path):
    try:
        outer(path).send(None)
    except StopIteration:
        pass


def comprehension(path):
    return [descend(path) for _ in (0,)]


def generator_expression(path):
    return sum(descend(path) or 0 for _ in (0,))


class Thing:
    def __init__(self, path):
        descend(path)

    @property
    def attribute(self):
        return descend(self.path)

    def __getattr__(self, name):
        path = self.__dict__["rest"]
        return descend(path)

    def __call__(self, path, *rest, **named):
        return descend(path)

    def __enter__(self):
        descend(self.path)

    def __exit__(self, *_):
        pass


def make(path):
    thing = Thing.__new__(Thing)
    thing.path = thing.rest = path
    return thing


def construct(path):
    Thing(path)


def use_property(path):
    make(path).attribute


def use_getattr(path):
    make(path).missing


def use_call(path):
    make([])(path, *[1, 2], **{"three": 3})


def use_with(path):
    with make(path):
        pass


def reduce(path):
    functools.reduce(lambda a, b: descend(path), [1, 2])


def mapped(path):
    list(map(descend, [path]))


def substitute(path):
    re.sub("x", lambda _: descend(path) or "", "x")


def partial(path):
    functools.partial(descend, path)()


def compiled(path):
    # Code that is freed afterwards; other code gets its place.
    number = random.randrange(1 << 30)
    source = "def made_%d(path):\n    descend(\n        path)\nmade_%d(path)\n" % (number, number)
    code = compile(source, "<made %d>" % number, "exec")
    exec(code, {"descend": descend, "path": path})


def handler(path):
    try:
        raise ValueError
    except ValueError:
        descend(path)
    finally:
        pass


def several_lines(path):
    return max(
        1,
        (
            descend(path)
            or 2
        ),
        key=str,
    )


def recursion(path, depth=12):
    if depth:
        recursion(path, depth - 1)
    else:
        descend(path)


KINDS = [
    plain, sort_key, generator, delegated, coroutine, comprehension, generator_expression,
    construct, use_property, use_getattr, use_call, use_with, reduce, mapped, substitute,
    partial, compiled, handler, several_lines, recursion,
]


def work(seed):
    numbers = random.Random(seed)
    for _ in range(COUNT):
        descend([numbers.choice(KINDS) for _ in range(numbers.randrange(8))])


def wait():
    while not os.path.exists(GO):
        sum(range(10000))


# A pattern's first use compiles it, in frames of no stack that is written down.
re.compile("x")
wait()
other = threading.Thread(target=work, args=(SEED + 1,))
other.start()
work(SEED)
other.join()
with open(OUT, "w") as out:
    for tid, start, end, frames in RESULTS:
        told = "\x1e".join("%s\x1f%s\x1f%d" % tuple(frame) for frame in frames)
        out.write("%d\t%d\t%d\t%s\n" % (tid, start, end, told))
