"""Two servers of ClickHouse, each with a part of a folder's files, and tables that are spread over both.

Debian's ClickHouse is of 2018, and cannot read Parquet: what DuckDB reads there is sent to it as text.
"""

import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

COLUMNS = {
    "samples": "begin_ms Int64, dur_ms UInt32, host String, service String, namespace String, version String, "
    "container String, event String, stack_id UInt64, value UInt64, period_ns UInt64, weight Float32",
    "stacks": "stack_id UInt64, frames Array(UInt64)",
    "frames": "frame_id UInt64, file_off UInt64, module String, function String, file String, line UInt32, "
    "inline_depth UInt8, kind UInt8",
    "hosts": "host String, begin_ms Int64, end_ms Int64, recorded_ms UInt64, cores UInt16, kernel String, arch String, "
    "agent_version String, rate_hz UInt16, lost_samples UInt64, lost_windows UInt32",
}
ORDER = {"samples": "(service, stack_id, host)", "stacks": "stack_id", "frames": "frame_id", "hosts": "host"}

CONFIG = """<yandex>
<logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><listen_host>127.0.0.1</listen_host>
<interserver_http_port>{inter}</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><users_config>{folder}/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size><remote_servers><fleet>{shards}</fleet></remote_servers></yandex>"""
USERS = """<yandex><profiles><default><max_memory_usage>2000000000</max_memory_usage></default></profiles><users>
<default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
</default></users><quotas><default></default></quotas></yandex>"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [it.getsockname()[1] for it in sockets]
    for it in sockets:
        it.close()
    return ports


class Shards:
    def __init__(self, program, folder):
        ports = free_ports(6)
        self.http, tcp, inter = ports[:2], ports[2:4], ports[4:]
        shard = "<shard><replica><host>127.0.0.1</host><port>{}</port></replica></shard>"
        shards = "".join(map(shard.format, tcp))
        self.processes = []
        for at in range(2):
            place = pathlib.Path(folder) / f"shard-{at}"
            place.mkdir()
            words = {"folder": place, "http": self.http[at], "tcp": tcp[at], "inter": inter[at], "shards": shards}
            (place / "config.xml").write_text(CONFIG.format(**words))
            (place / "users.xml").write_text(USERS)
            with open(place / "output", "w") as output:
                words = [program, f"--config-file={place / 'config.xml'}"]
                process = subprocess.Popen(words, stdout=output, stderr=output, cwd=place)
            self.processes.append(process)
        for at, port in enumerate(self.http):
            self.wait(at, port)

    def wait(self, at, port):
        end = time.monotonic() + 120
        while True:
            try:
                return self.ask(port, "SELECT 1")
            except OSError as error:
                assert self.processes[at].poll() is None, "a server of ClickHouse has ended"
                assert time.monotonic() < end, f"ClickHouse does not answer: {error}"
                time.sleep(0.2)

    def ask(self, port, sql, data=None):
        query = urllib.parse.urlencode({"query": sql})
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/?{query}", data or b"") as response:
                return response.read().decode()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{sql[:200]}: {error.read()[:500]}")

    def fill(self, connection, folder, tables):
        """Each host's files go to one of the two."""
        for table, columns in COLUMNS.items():
            names = [it.split()[0] for it in columns.split(", ")]
            place = str(folder / table / f"{tables[table]}.parquet").replace("'", "''")
            rows = connection.sql(f"select {', '.join(names)}, filename from read_parquet('{place}', filename=true)").fetchall()
            files = sorted({row[-1] for row in rows})
            for at, port in enumerate(self.http):
                self.ask(port, f"CREATE TABLE {table}_here ({columns}) ENGINE = MergeTree() ORDER BY {ORDER[table]}")
                self.ask(port, f"CREATE TABLE {table} AS {table}_here ENGINE = Distributed(fleet, default, {table}_here)")
                own = [row[:-1] for row in rows if files.index(row[-1]) % 2 == at]
                text = "".join("\t".join(map(written, row)) + "\n" for row in own)
                self.ask(port, f"INSERT INTO {table}_here ({', '.join(names)}) FORMAT TabSeparated", text.encode())
                assert own, f"a shard has no rows of {table}"

    def kill(self, at):
        self.processes[at].send_signal(signal.SIGKILL)
        self.processes[at].wait()

    def close(self):
        for at, process in enumerate(self.processes):
            if process.poll() is None:
                self.kill(at)


def written(value):
    if isinstance(value, list):
        return f"[{','.join(map(str, value))}]"
    return str(value).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def program():
    """The server's program, or None."""
    return os.environ.get("CLICKHOUSE_SERVER")
