#!/usr/bin/env python3
"""What an hour of a host with services takes as Parquet: see README.md, "What a machine sends".

    sudo bench/services.py record SPOOL [--minutes 60] [--rate 608]
    bench/services.py sizes DIR        of what `proftop-fleet ship` wrote from SPOOL

`record` starts services with clients of theirs (PostgreSQL, Redis, nginx, and web services in Python, Node,
Java and Go: bench/services/), and has `proftop agent` write them into SPOOL. The rate stands for the CPUs
that this machine does not have: 32 CPUs at 19 Hz are as many samples as 1 CPU at 608 Hz. Clients ask at
intervals, so that a busy machine changes how much CPU time the services take, and little else.

`sizes` prints for each table the bytes of its files, and of each column. It needs the Python package pyarrow.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
PROFTOP = os.environ.get("PROFTOP", str(TARGET / "release/proftop"))
POSTGRES = Path("/usr/lib/postgresql/15/bin")

NGINX = """daemon off; pid {work}/nginx.pid; error_log {work}/nginx.log; worker_processes 2;
events {{}}
http {{ access_log {work}/access.log; gzip on; gzip_types *; client_body_temp_path {work}/body;
 proxy_temp_path {work}/proxy; fastcgi_temp_path {work}/f; uwsgi_temp_path {work}/u; scgi_temp_path {work}/s;
 server {{ listen 127.0.0.1:18080; root {work}/www;
  location /python/ {{ proxy_pass http://127.0.0.1:18081/; }}
  location /node/ {{ proxy_pass http://127.0.0.1:18082/; }}
  location /java/ {{ proxy_pass http://127.0.0.1:18083/; }}
  location /go/ {{ proxy_pass http://127.0.0.1:18084/; }} }} }}
"""

# What the clients ask nginx for, and how often in a second.
PATHS = {
    "/index.html": 60,
    "/python/page": 20, "/python/report": 8, "/python/words": 8,
    "/node/search": 30, "/node/page": 40, "/node/sign": 20,
    "/java/group": 40, "/java/match": 30, "/java/sign": 15,
    "/go/list": 50, "/go/page": 40, "/go/count": 20,
}  # fmt: skip


def start(command, work, **more):
    log = open(work / "log", "ab")
    return subprocess.Popen([str(it) for it in command], stdout=log, stderr=log, cwd=work, **more)


def client(path, rate, until):
    """Asks for a path at random moments."""
    while time.time() < until:
        time.sleep(random.expovariate(rate))
        try:
            url = f"http://127.0.0.1:18080{path}?n={random.randrange(1000)}"
            urllib.request.urlopen(url, timeout=20).read()
        except OSError:
            time.sleep(1)


def redis_client(until):
    kinds = "set,get,incr,lpush,rpush,lpop,sadd,hset,spop,zadd,zpopmin,lrange_100,lrange_300,mset"
    while time.time() < until:
        command = ["redis-benchmark", "-p", "16379", "-n", "2000", "-r", "10000", "-d", "200", "-q", "-t", kinds]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        time.sleep(4)


def services(work, seconds):
    """Runs the services and their clients in this process's children."""
    running = []
    as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    data = work / "pg"
    data.mkdir()
    shutil.chown(data, "postgres")
    sql = dict(check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
    subprocess.run([*as_postgres, POSTGRES / "initdb", "-D", data, "-A", "trust"], **sql)
    where = ["-h", "127.0.0.1", "-p", "15432"]
    options = ["-k", data, "-p", "15432", "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
    running.append(start([*as_postgres, POSTGRES / "postgres", "-D", data, *options], work))
    running.append(start(["redis-server", "--port", "16379", "--save", "5 1000"], work))
    (work / "www").mkdir()
    (work / "www/index.html").write_text("<p>hello</p>" * 2000)
    (work / "nginx.conf").write_text(NGINX.format(work=work))
    running.append(start(["nginx", "-c", work / "nginx.conf"], work))
    subprocess.run(["go", "build", "-o", work / "goservice", HERE.resolve() / "services/app.go"], check=True)
    subprocess.run(["javac", "-d", work, HERE.resolve() / "services/App.java"], check=True)
    ours = HERE.resolve() / "services"
    running.append(start([sys.executable, ours / "app.py", 18081], work))
    running.append(start(["node", ours / "app.js", 18082], work))
    running.append(start(["java", "-Xmx512m", "-cp", work, "App", 18083], work))
    running.append(start([work / "goservice", 18084], work))
    time.sleep(5)
    subprocess.run([POSTGRES / "pgbench", *where, "-U", "postgres", "-i", "-s", "5", "postgres"], **sql)
    until = time.time() + seconds
    bench = [POSTGRES / "pgbench", *where, "-U", "postgres", "-T", int(seconds), "postgres"]
    running.append(start([*bench, "-c", "4", "-R", "120"], work))
    running.append(start([*bench, "-c", "4", "-R", "300", "-S", "-M", "prepared"], work))
    running.append(start([*bench, "-c", "2", "-R", "60", "-S", "-C"], work))
    threads = [threading.Thread(target=client, args=(path, rate, until)) for path, rate in PATHS.items()]
    threads.append(threading.Thread(target=redis_client, args=(until,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in running:
        process.terminate()


def record(args):
    work = Path(tempfile.mkdtemp())
    work.chmod(0o755)
    seconds = args.minutes * 60 + 30
    load = os.fork()
    if load == 0:
        os.nice(args.nice)
        services(work, seconds)
        os._exit(0)
    time.sleep(20)
    places = ["--ring", "1m", "-o", work / "ring.pft", "--control", work / "control"]
    options = ["-p", load, "-F", args.rate, "--spool", args.spool, "--save-on", f"file:{work}/save"]
    agent = start([PROFTOP, "agent", *options, *places], work)
    time.sleep(args.minutes * 60)
    status = [PROFTOP, "agent", "status", "--json", "--control", work / "control"]
    print(subprocess.run([str(it) for it in status], capture_output=True, text=True).stdout)
    agent.send_signal(signal.SIGINT)
    agent.wait()
    os.waitpid(load, 0)
    # PostgreSQL is still ending and removes files itself, so that some are gone while the folder is removed.
    shutil.rmtree(work, ignore_errors=True)


def sizes(args):
    import pyarrow.parquet as parquet

    for table in ["samples", "stacks", "frames", "hosts"]:
        columns, files = Counter(), sorted(Path(args.dir, table).rglob("*.parquet"))
        rows = 0
        for file in files:
            metadata = parquet.ParquetFile(file).metadata
            rows += metadata.num_rows
            for group in range(metadata.num_row_groups):
                for at in range(metadata.num_columns):
                    column = metadata.row_group(group).column(at)
                    columns[column.path_in_schema] += column.total_compressed_size
        total = sum(it.stat().st_size for it in files)
        print(f"{table}: {total:,} bytes, {rows:,} rows, {len(files)} files")
        for column, size in columns.most_common():
            print(f"    {column:24} {size:10,}  {size / max(rows, 1):6.2f} a row")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("spool")
    recording.add_argument("--minutes", type=float, default=60)
    recording.add_argument("--rate", type=int, default=608)
    recording.add_argument("--nice", type=int, default=0)
    reading = commands.add_parser("sizes")
    reading.add_argument("dir")
    args = parser.parse_args()
    {"record": record, "sizes": sizes}[args.command](args)


if __name__ == "__main__":
    main()
