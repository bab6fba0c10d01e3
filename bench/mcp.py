#!/usr/bin/env python3
"""Drives `proftop mcp` with the client that PyPI has (`mcp`), in each way it can begin.

    bench/mcp.py [PROFTOP]

The client is installed into a folder of its own, which goes at the end. Prints `skipped:` with
the reason where it cannot be had. Live questions are asked as root only.
"""

import os
import subprocess
import sys
import tempfile
import venv

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEMO = os.path.join(ROOT, "assets/demo.pft")

# Runs in the folder's Python, which has the client.
CLIENT = '''
import asyncio, json, sys, time
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

async def drive(mode, proftop, demo, live):
    server = StdioServerParameters(command=proftop, args=["mcp"])
    begun = time.monotonic()
    async with Client(stdio_client(server), mode=mode) as client:
        version = client.protocol_version
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools == ["look", "drill", "code", "diff", "explain_missing"], tools
        async def ask(tool, arguments, fails=False):
            answer = await client.call_tool(tool, arguments)
            text = answer.content[0].text
            assert bool(answer.is_error) == fails, text
            return text
        look = await ask("look", {"samples": demo})
        name = next(l for l in look.splitlines() if l.startswith("Hottest")).split("`")[1]
        for tool in ("drill", "code"):
            assert name in await ask(tool, {"samples": demo, "function": name})
        assert "No difference" in await ask("diff", {"a": demo, "b": demo})
        await ask("explain_missing", {"samples": demo})
        await ask("look", {"samples": "/etc/passwd"}, fails=True)
        if live:
            text = await ask("look", {"seconds": 1})
            assert "`look-1`" in text, text
            await ask("drill", {})
    print(f"{mode}: version {version}, {len(tools)} tools, "
          f"{time.monotonic() - begun:.1f} s with its end")

for mode in ("legacy", "auto"):
    asyncio.run(drive(mode, *sys.argv[1:3], sys.argv[3] == "live"))
'''


def main():
    proftop = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "target/release/proftop")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = os.path.join(folder, "bin/python")
        install = [python, "-m", "pip", "install", "-q", "--timeout", "20", "--retries", "1", "mcp>=2"]
        try:
            got = subprocess.run(install, capture_output=True, timeout=150)
            why = got.stderr.decode()[-300:].strip() if got.returncode else None
        except subprocess.TimeoutExpired:
            why = "it took longer than 150 s"
        if why is not None:
            # On one line: CI looks for its beginning.
            print("skipped: the client cannot be installed:", " ".join(why.split()))
            return 0
        version = subprocess.run(
            [python, "-c", "from importlib.metadata import version; print(version('mcp'))"],
            capture_output=True, text=True, check=True)
        print("mcp", version.stdout.strip())
        live = "live" if os.geteuid() == 0 else "files"
        client = [python, "-c", CLIENT, os.path.abspath(proftop), DEMO, live]
        return subprocess.run(client).returncode


if __name__ == "__main__":
    sys.exit(main())
