"""Stands still in one task of asyncio after the other, and writes down which and when.

    tasks.py SEED COUNT NANOSECONDS GO OUT

As program.py does; behind the frame of a task's coroutine is the task: `task ‹name›`, or
`task ‹›` and the coroutine's name if the program gave it none; behind that `task ‹name› awaits` for
the task that awaits it, with where its coroutine goes on then, and so on. Asyncio is loaded by a
program that has run for a while.
"""

import os
import random
import re
import sys
import threading
import time

SEED, COUNT, NANOSECONDS = (int(number) for number in sys.argv[1:4])
GO, OUT = sys.argv[4:6]
RESULTS = []
NAMES = ["worker", "naïve", "λ", "🐍 of two", "x" * 60, "Task-one", "the other"]
clock = time.monotonic_ns


def spin(asks):
    task = asyncio.current_task()
    coroutine = task.get_coro()
    # Whose name was never asked for has only a number.
    told = called(task) if asks else None
    frames = []
    frame = sys._getframe(0)
    while frame is not None:
        code = frame.f_code
        frames.append([code.co_qualname, code.co_filename, frame.f_lineno])
        if frame is coroutine.cr_frame:
            frames.append(["", code.co_filename, 0])
            frames.extend(awaiting(task))
        frame = frame.f_back
    start = 0  # is set on the loop's line: who is preempted before it is not there yet
    end = clock() + NANOSECONDS
    while (now := clock()) < end: start = start or now  # noqa: the loop is on one line
    frames[0][2] = spin.__code__.co_firstlineno + 16
    for frame in frames:
        frame[0] = frame[0] or told or called(task)
    RESULTS.append((threading.get_native_id(), start or end, end, frames))


def called(task):
    name = task.get_name()
    if re.fullmatch("Task-[0-9]+", name):
        return f"task ‹›{task.get_coro().__qualname__}"
    widest = ord(max(name))
    room = 48 // (1 if widest < 256 else 2 if widest < 65536 else 4)
    return f"task ‹{name if len(name) <= room else name[:room - 1] + '…'}›"


def awaiting(future):
    """The frames of the tasks that await it, as far as that is told."""
    frames = []
    for _ in range(15):
        future = awaits_it(future)
        if future is None:
            return frames
        if isinstance(future, int):
            return frames + [[f"{future} tasks await", "", 0]]
        if isinstance(future, asyncio.Task):
            frame = future.get_coro().cr_frame
            frames.append([called(future) + " awaits", frame.f_code.co_filename, frame.f_lineno])
    future = awaits_it(future)
    if isinstance(future, int):
        frames.append([f"{future} tasks await", "", 0])
    elif future is not None:
        frames.append(["more tasks await", "", 0])
    return frames


def awaits_it(future):
    """What awaits it, None, or the number of several."""
    if hasattr(future, "_asyncio_awaited_by"):
        all = future._asyncio_awaited_by or ()
        return len(all) if len(all) > 1 else next(iter(all), None)
    # Until 3.13 a task says only what it waits for itself. That is the future, or one that the first
    # thing knows which is called when the future is done.
    first = called_first(future)
    group = getattr(first, "__self__", None)
    if isinstance(group, asyncio.TaskGroup):
        return is_waiting(group._parent_task, group._on_completed_fut)
    known = [cell.cell_contents for cell in getattr(first, "__closure__", None) or ()]
    futures = [each for each in known if isinstance(each, asyncio.Future)]
    tasks = [is_waiting(getattr(called_first(each), "__self__", None), each) for each in [future] + futures]
    return next(filter(None, tasks), None)


def called_first(future):
    return (future._callbacks or [[None]])[0][0]


def is_waiting(task, future):
    return task if isinstance(task, asyncio.Task) and task._fut_waiter is future else None


def through_c(asks):
    sorted([0], key=lambda _: spin(asks) or 0)


async def leaf(asks):
    spin(asks)


async def awaits(asks):
    await leaf(asks)
    await asyncio.sleep(0)
    await leaf(asks)


async def calls(asks):
    await asyncio.sleep(0)
    through_c(asks)


async def generates(asks):
    async def numbers():
        yield spin(asks)
        await asyncio.sleep(0)
        yield spin(asks)

    async for _ in numbers():
        pass


async def gathers(asks):
    await asyncio.gather(leaf(asks), awaits(asks))
    spin(asks)


async def groups(asks):
    async with asyncio.TaskGroup() as group:
        group.create_task(leaf(asks), name="in a group")
        group.create_task(awaits(asks))


async def shields(asks):
    await asyncio.shield(awaits(asks))


async def waits(asks):
    await asyncio.wait([asyncio.create_task(awaits(asks), name="one of those")])


async def shares(asks):
    shared = asyncio.create_task(awaits(asks), name="shared")

    async def one():
        await shared

    await asyncio.gather(one(), one())


async def hands_on(asks, depth=20):
    """More tasks await each other than are looked at."""
    if not depth:
        return await leaf(asks)
    await asyncio.create_task(hands_on(asks, depth - 1), name=f"at {depth}")


async def drives(asks):
    """Runs another coroutine by hand, which is no task."""
    try:
        leaf(asks).send(None)
    except StopIteration:
        pass


ALL = [leaf, awaits, calls, generates, gathers, groups, shields, waits, shares, hands_on, drives]


async def main(seed, count):
    numbers = random.Random(seed)
    loop = asyncio.get_running_loop()
    for _ in range(count):
        work = numbers.choice(ALL)(numbers.random() < 0.5)
        name = numbers.choice(NAMES) if numbers.random() < 0.5 else None
        how = numbers.randrange(4)
        if how == 0:
            await work
        elif how == 1:
            # It runs at once, inside of this task.
            await asyncio.Task(work, loop=loop, name=name, eager_start=True)
        else:
            await loop.create_task(work, name=name)


async def wait():
    while not os.path.exists(GO):
        pass


end = clock() + 500_000_000
while clock() < end:
    pass
import asyncio

asyncio.run(wait())
asyncio.run(main(SEED, COUNT))
thread = threading.Thread(target=lambda: asyncio.run(main(SEED + 1, COUNT // 2)))
thread.start()
thread.join()
with open(OUT, "w") as out:
    for tid, start, end, frames in RESULTS:
        stack = "\x1e".join("\x1f".join(map(str, frame)) for frame in frames)
        out.write(f"{tid}\t{start}\t{end}\t{stack}\n")
