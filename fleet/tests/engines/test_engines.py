"""The SQL of `proftop-fleet` in other engines, and its numbers by other SQL.

Run by `.ci/fleet` and by `fleet/tests/engines.rs`. PROFTOP_FLEET is the program; MAKE_FLEET and MAKE_SPOOL are the
examples of these names. CLICKHOUSE_SERVER is a server's program, of which two are started as shards; SPARK_PYTHON is
a Python with pyspark, of which a cluster is started. What is missing is skipped, and named.
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import duckdb

import cluster
import shards

FLEET = os.environ.get("PROFTOP_FLEET", "proftop-fleet")
MAKE_FLEET = os.environ.get("MAKE_FLEET", "make_fleet")
MAKE_SPOOL = os.environ.get("MAKE_SPOOL", "make_spool")
TABLES = {"samples": "*/*/*", "stacks": "*/*", "frames": "*/*", "hosts": "*/*"}


def skipped(case, what):
    print(f"skipped: {what}", file=sys.stderr)
    case.skipTest(what)


def run(*words, code=0):
    done = subprocess.run([FLEET, *map(str, words)], capture_output=True, text=True, timeout=600)
    assert done.returncode == code, (words, done.returncode, done.stderr)
    return done


def answer(*words):
    return json.loads(run(*words, "--format", "json").stdout)


def statements(*words):
    """The statements that --print prints."""
    return [it for it in run(*words, "--print").stdout.split(";\n") if it.strip()]


def number(value):
    return 0.0 if value is None else float(value)


class Case(unittest.TestCase):
    """A folder of four hosts that the generator has written, and of two that the shipper has."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.dir = cls.folder / "data"
        subprocess.run([MAKE_FLEET, cls.dir, "4", "4", "2", "30", "200", "2", "0.1"], check=True, capture_output=True)
        for host in ("db-01", "o'brien \\ 2"):
            spool = cls.folder / f"spool-{len(host)}"
            subprocess.run([MAKE_SPOOL, spool, "1", "3", host, "10", "40", "0"], check=True, capture_output=True)
            config = cls.folder / "ship.toml"
            text = f"[spool]\ndir = {json.dumps(str(spool))}\n[ship]\nstate = \"{cls.folder}/state-{len(host)}\"\n"
            config.write_text(text + f'[labels]\nversion = "1.0"\n[[sink]]\ntype = "parquet"\ndir = "{cls.dir}"\n')
            run("ship", "--once", "--as-root", "--config", config)

    def assertNear(self, found, expected, about):
        near = math.isclose(number(found), number(expected), rel_tol=1e-9, abs_tol=1e-9)
        self.assertTrue(near, f"{about}: {found} is not {expected}")

    def check_top(self, rows, expected):
        """Rows of the statement of `top` against those that the embedded engine has printed as JSON."""
        names = "function module modules kind self total self_samples samples hosts".split()
        found = {}
        for row in rows:
            row = dict(zip(names, row))
            found[row["function"] or None, row["module"] if not row["function"] else None] = row
        self.assertEqual(len(found), len(expected["rows"]))
        for row in expected["rows"]:
            key = row["function"], row["module"] if row["function"] is None else None
            for column in ("self", "total", "self_samples", "samples", "hosts"):
                self.assertNear(found[key][column], row[column], (key, column))

    def check_hosts(self, rows, expected):
        names = "host all self total all_samples self_samples samples".split()
        found = {row[0]: dict(zip(names, row)) for row in rows if number(row[3]) > 0}
        self.assertEqual(sorted(found), sorted(row["host"] for row in expected["rows"]))
        for row in expected["rows"]:
            for column, name in (("of_host", "all"), ("self", "self"), ("total", "total"), ("samples", "samples")):
                self.assertNear(found[row["host"]][name], row[column], (row["host"], column))

    def check_same(self, rows, expected):
        """Rows of one engine against those of another."""
        self.assertEqual(len(rows), len(expected))
        for row, other in zip(rows, expected):
            for value, wanted in zip(row, other, strict=True):
                if isinstance(wanted, str):
                    self.assertEqual(str(value), wanted)
                else:
                    self.assertNear(value, wanted, (row, other))

    QUESTIONS = {
        "top": ["top", "--top", "100000"],
        "hosts": ["hosts", "--function", "service_0::main"],
        "hosts of an inlined function": ["hosts", "--function", "nginx::inlined", "--top", "100"],
        "of one service": ["top", "--top", "100000", "--service", "service-1", "--service", "nginx"],
        "of a host with a quote": ["top", "--top", "100000", "--host", "o'brien \\ 2"],
    }

    def check_questions(self, engine, ask):
        """Asks another engine what the embedded one is asked. `ask` runs a statement, and returns rows."""
        for name, (question, *words) in self.QUESTIONS.items():
            with self.subTest(name):
                printed = statements(question, self.dir, *words, "--engine", engine)
                rows = ask(printed[-1])
                check = self.check_top if question == "top" else self.check_hosts
                check(rows, answer(question, self.dir, *words))
        sides = ["diff", self.dir, "--a", "version=v0", "--b", "version=v1"]
        known = duckdb_on(self.dir)
        for statement, same in zip(statements(*sides, "--engine", engine)[-4:], statements(*sides, "--engine", "duckdb")[-4:]):
            self.check_same(ask(statement), known.sql(same).fetchall())
        self.check_derived(engine, ask)

    # What is compared of each table that `compact` and `rollup` write.
    SUMS = {
        "stacks": "count(*), sum(stack_id), sum({length}(frames))",
        "frames": "count(*), sum(frame_id), sum(line), sum(case when function = '' then 0 else 1 end)",
        "hosts": "count(*), sum(recorded_ms)",
        "samples": "count(*), sum(stack_id), sum(value)",
        "rollup_h": "count(*), sum(stack_id), sum(counted), sum(hosts), sum(amount), sum(squares)",
    }

    def check_derived(self, engine, ask):
        """What `compact` and `rollup` would write with another engine against what they write with the embedded one."""
        known = duckdb.connect()
        length = {"duckdb": "len", "spark": "size"}.get(engine, "length")
        for task, tables in (("compact", ["stacks", "frames", "hosts", "samples"]), ("rollup", ["rollup_h"])):
            printed = statements(task, self.dir, "-o", "/there", "--engine", engine)[-len(tables):]
            with tempfile.TemporaryDirectory() as folder:
                run(task, self.dir, "-o", f"{folder}/out")
                for table, statement in zip(tables, printed, strict=True):
                    with self.subTest(table):
                        # From the first SELECT up to where the rows go, which DuckDB says at the end.
                        rows = statement[statement.index("SELECT"):].split("\n) TO '")[0]
                        found = ask(f"SELECT {self.SUMS[table].format(length=length)} FROM (\n{rows}\n) t")
                        sums = self.SUMS[table].format(length="len")
                        files = f"read_parquet('{folder}/out/{table}/**/*.parquet')"
                        self.check_same(found, known.sql(f"SELECT {sums} FROM {files}").fetchall())


def duckdb_on(folder):
    connection = duckdb.connect()
    for table, files in TABLES.items():
        place = str(folder / table / f"{files}.parquet").replace("'", "''")
        connection.sql(f"create view {table} as from read_parquet('{place}')")
    return connection


class DuckDb(Case):
    def test_the_same_statements_have_the_same_rows(self):
        connection = duckdb_on(self.dir)
        self.check_questions("duckdb", lambda sql: connection.sql(sql).fetchall())

    def test_other_sql_has_the_same_numbers(self):
        """Written for DuckDB alone, by lists and windows, and by whole samples."""
        rows = duckdb_on(self.dir).sql("""
            with one as (select distinct on (stack_id) stack_id, frames from stacks order by stack_id),
            described as (select frame_id, inline_depth, max(function) f, max(module) m, max(kind) k from frames group by all),
            ranked as (select *, row_number() over (partition by frame_id order by inline_depth desc) r from described),
            placed as (select stack_id, unnest(frames) frame_id, generate_subscripts(frames, 1) place from one),
            named as (select stack_id, place, r, f, m, k from placed join ranked using (frame_id)),
            functions as (select stack_id, f, if(f = '', m, '') m, bool_or(place = 1 and r = 1) own from named
                where k <> 4 group by all),
            counted as (select host, stack_id, sum(value * period_ns) ns, sum(value) n from samples
                where event = 'cpu' group by all)
            select nullif(f, '') f, if(f = '', functions.m, null) m, coalesce(sum(ns) filter (own), 0) / 1e9 own,
                sum(ns) / 1e9 total, coalesce(sum(n) filter (own), 0) own_n, sum(n) n, count(distinct host) hosts
            from counted join functions using (stack_id) group by f, functions.m""").fetchall()
        found = {(row[0], row[1]): row[2:] for row in rows}
        document = answer("top", self.dir, "--top", "100000")
        self.assertEqual(len(found), len(document["rows"]))
        for row in document["rows"]:
            key = row["function"], row["module"] if row["function"] is None else None
            wanted = [row[it] for it in ("self", "total", "self_samples", "samples", "hosts")]
            for value, expected in zip(found[key], wanted, strict=True):
                self.assertNear(value, expected, key)

    def test_a_comparison_is_that_of_shares_of_hosts(self):
        rows = duckdb_on(self.dir).sql("""
            select version, host, sum(value) filter (where stack_id in (select stack_id from stacks join frames
                on frame_id = frames[1] where function = 'planted')) x, sum(value) y
            from samples where service like 'service-%' group by all""").fetchall()
        shares, variances = {}, {}
        for version in ("v0", "v1"):
            hosts = [(number(x), number(y)) for of, _, x, y in rows if of == version]
            share = sum(x for x, _ in hosts) / sum(y for _, y in hosts)
            rest = sum((x - share * y) ** 2 for x, y in hosts) / sum(y for _, y in hosts) ** 2
            shares[version] = share
            variances[version] = max(rest * len(hosts) / (len(hosts) - 1), share * (1 - share) / sum(y for _, y in hosts))
        document = answer("diff", self.dir, "--a", "version=v0", "--b", "version=v1", "--top", "1000")
        row = next(it for it in document["rows"] if it["function"] == "planted")
        self.assertNear(row["self_share_a"], shares["v0"], row)
        self.assertNear(row["self_share_b"], shares["v1"], row)
        freedom = sum(variances.values()) ** 2 / sum(it ** 2 for it in variances.values())
        # Two hosts a side: from one to two degrees of freedom, whose quantiles are 12.71 and 4.30.
        deviation = math.sqrt(sum(variances.values()))
        self.assertTrue(1 <= freedom <= 2, freedom)
        self.assertTrue(4.30 * deviation <= row["self_half"] <= 12.71 * deviation, (row, deviation))


class ChDb(Case):
    def test_the_engine_of_clickhouse_has_the_same_rows(self):
        try:
            from chdb import session
        except ImportError as error:
            skipped(self, f"the engine of a new ClickHouse: {error}")
        engine = session.Session()
        self.addCleanup(engine.close)
        # To print, no server is asked.
        address = "clickhouse+http://127.0.0.1:1"
        for view in statements("top", self.dir, "--engine", address)[: len(TABLES)]:
            engine.query(view)

        def ask(sql):
            answer = str(engine.query(sql, "JSONCompact"))
            return json.loads(answer)["data"]

        self.check_questions(address, ask)


class TwoShards(Case):
    def test_two_shards_have_the_same_answers_and_one_alone_has_none(self):
        if not (program := shards.program()):
            skipped(self, "two shards of ClickHouse: CLICKHOUSE_SERVER names no program")
        # The tables that docs/fleet.md tells to make.
        page = pathlib.Path(__file__, "../../../../docs/fleet.md").resolve().read_text().replace("\n    ", " ")
        for table, columns in shards.COLUMNS.items():
            self.assertIn(f"CREATE TABLE {table} ({columns}) ENGINE = MergeTree ORDER BY {shards.ORDER[table]};", page)
        servers = shards.Shards(program, self.folder)
        self.addCleanup(servers.close)
        servers.fill(duckdb.connect(), self.dir, TABLES)
        address = f"clickhouse+http://127.0.0.1:{servers.http[0]}"
        more = {
            "by": ["top", "--by", "service,version", "--top", "100000"],
            "diff": ["diff", "--a", "version=v0", "--b", "version=v1", "--top", "100000"],
        }
        for name, (question, *words) in {**self.QUESTIONS, **more}.items():
            with self.subTest(name):
                found = answer(question, *words, "--engine", address)
                self.check_document(found, answer(question, self.dir, *words))
        for at, engine in enumerate(([self.dir], ["--engine", address])):
            run("flame", *engine, "--service", "nginx", "-o", self.folder / f"{at}.folded")
        self.assertEqual((self.folder / "0.folded").read_text(), (self.folder / "1.folded").read_text())
        done = run("top", "--engine", address, "--service", "x' OR 'a'='a", code=1)
        self.assertIn("no samples of that time have the service", done.stderr)
        servers.kill(1)
        done = run("top", "--engine", address, code=1)
        self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
        self.assertRegex(done.stderr, r"ClickHouse at .*Code: \d+.*onnect")
        servers.kill(0)
        done = run("top", "--engine", address, code=1)
        self.assertRegex(done.stderr, r"ClickHouse at .*onnect")

    def check_document(self, found, expected):
        """Equal, but for what is behind the ninth digit of numbers."""
        if isinstance(expected, dict):
            self.assertEqual(found.keys(), expected.keys())
            for key, value in expected.items():
                self.check_document(found[key], value)
        elif isinstance(expected, list):
            self.assertEqual(len(found), len(expected))
            for one, other in zip(self.in_order(found), self.in_order(expected)):
                self.check_document(one, other)
        elif isinstance(expected, float):
            near = math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-9)
            self.assertTrue(near, (found, expected))
        else:
            self.assertEqual(found, expected)

    def in_order(self, rows):
        """Rows that are equal in what they are sorted by may come in any order."""
        key = lambda row: [str(row.get(it)) for it in ("function", "module", "service", "version", "host")]
        return sorted(rows, key=key) if rows and isinstance(rows[0], dict) else rows


class Spark(Case):
    def test_two_executors_have_the_same_rows_and_one_goes_on_alone(self):
        if not (python := cluster.python()):
            skipped(self, "a cluster of Spark: SPARK_PYTHON names no Python with pyspark")
        spark = cluster.Cluster(python, self.folder)
        self.addCleanup(spark.close)
        printed = statements("top", self.dir, "--top", "100000", "--engine", "spark")
        for statement in printed[:4]:
            spark.ask(statement)
        spark.wait_for_executors(2)
        self.check_questions("spark", spark.ask)
        # A worker is killed while it works on this.
        spark.send(printed[-1])
        spark.kill("worker-2")
        self.check_top(spark.receive(), answer("top", self.dir, "--top", "100000"))
        spark.wait_for_executors(1)
        self.check_top(spark.ask(printed[-1]), answer("top", self.dir, "--top", "100000"))


if __name__ == "__main__":
    unittest.main()
