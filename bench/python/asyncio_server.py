"""A server on asyncio's streams, and clients of it in the same loop."""

import asyncio
import json
import sys

PORT = int(sys.argv[1])


async def handle(reader, writer):
    while line := await reader.readline():
        numbers = json.loads(line)
        writer.write(json.dumps({"sum": sum(numbers), "sorted": sorted(numbers)}).encode() + b"\n")
        await writer.drain()


async def ask():
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    while True:
        writer.write(json.dumps(list(range(40, 0, -1))).encode() + b"\n")
        await writer.drain()
        json.loads(await reader.readline())


async def main():
    async with await asyncio.start_server(handle, "127.0.0.1", PORT):
        await asyncio.gather(*(ask() for _ in range(8)))


asyncio.run(main())
