"""An aiohttp server, and clients of it in another process."""

import asyncio
import json
import multiprocessing
import sys

from aiohttp import ClientSession, web

PORT = int(sys.argv[1])


async def price(item):
    await asyncio.sleep(0)
    return sum(hash((item, number)) % 7 for number in range(50))


async def handle(request):
    prices = await asyncio.gather(*(price(item) for item in range(10)))
    return web.json_response({"path": request.path, "prices": prices, "text": json.dumps(prices)})


async def ask():
    async with ClientSession() as session:
        while True:
            try:
                async with session.get(f"http://127.0.0.1:{PORT}/cart/7") as answer:
                    await answer.json()
            except OSError:
                await asyncio.sleep(0.1)


async def ask_often():
    await asyncio.gather(*(ask() for _ in range(8)))


def client():
    asyncio.run(ask_often())


if __name__ == "__main__":
    multiprocessing.get_context("fork").Process(target=client, daemon=True).start()
    app = web.Application()
    app.router.add_get("/cart/{id}", handle)
    web.run_app(app, host="127.0.0.1", port=PORT, print=None)
