"""`proftop-fleet ship` against doubles of servers, and its Parquet files against other readers.

Run by `.ci/fleet` and by `fleet/tests/doubles.rs`. PROFTOP_FLEET is the program, MAKE_SPOOL the example of that
name. Everything that a double takes is decoded by Google's protobuf, and checked against what MAKE_SPOOL says that
it has put into the spool.
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import messages
    import server
except ImportError as error:
    print(f"skipped: the shipper against doubles of servers: {error}", file=sys.stderr)
    messages = None

FLEET = os.environ.get("PROFTOP_FLEET", "proftop-fleet")
MAKE_SPOOL = os.environ.get("MAKE_SPOOL", "make_spool")
SERVICES = ["api", "kworker", "nginx", "postgresql@15-main"]


class Case(unittest.TestCase):
    def setUp(self):
        if messages is None:
            self.skipTest("the Python packages protobuf and opentelemetry-proto are needed")
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.spool, self.data = self.folder / "spool", self.folder / "data"
        self.doubles, self.windows, self.processes = [], {}, []
        self.addCleanup(self.end)

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stderr.close()
        for double in self.doubles:
            double.close()
            self.assertEqual(double.wrong, [])

    # What is there

    def fill(self, first, count, **more):
        words = [first, count, more.get("host", "db-01"), more.get("age", 10), more.get("stacks", 40)]
        out = subprocess.run([MAKE_SPOOL, self.spool, *map(str, words)], check=True, capture_output=True)
        for window in json.loads(out.stdout)["windows"]:
            self.windows[window["number"]] = window["stacks"]

    def total(self, numbers=None):
        windows = [it for number, it in self.windows.items() if numbers is None or number in numbers]
        return sum(sum(stacks.values()) for window in windows for stacks in window.values())

    def expected(self, service):
        sums = {}
        for window in self.windows.values():
            for key, value in window[service].items():
                sums[key] = sums.get(key, 0) + value
        return sums

    def double(self, **more):
        double = server.Double(**more)
        self.doubles.append(double)
        return double

    # The shipper

    def configure(self, *sinks, head="", catch_up=1000):
        ship = f'state = "{self.folder / "state"}"\ncatch_up = {catch_up}'
        text = f'[spool]\ndir = "{self.spool}"\n[ship]\n{ship}\n{head}'
        for sink in sinks:
            lines = [f"{key} = {json.dumps(value)}" for key, value in sink.items()]
            text += "\n".join(["[[sink]]", *lines]) + "\n"
        self.config = self.folder / "ship.toml"
        self.config.write_text(text)

    def words(self, *words):
        return [FLEET, words[0], "--config", self.config, *words[1:]]

    def ship(self, code=0):
        done = subprocess.run(self.words("ship", "--once", "--as-root"), capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def start(self):
        process = subprocess.Popen(self.words("ship", "--as-root"), stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def status(self, sink=0):
        out = subprocess.run(self.words("status", "--json"), check=True, capture_output=True)
        return json.loads(out.stdout)["sinks"][sink]

    def wait(self, what, holds, seconds=60):
        end = time.monotonic() + seconds
        while not holds():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def pyroscope(self, double, **more):
        return {"type": "pyroscope", "url": f"http://127.0.0.1:{double.port}", **more}

    def otlp(self, double, **more):
        return {"type": "otlp", "url": f"http://127.0.0.1:{double.port}", **more}

    def parquet(self, **more):
        return {"type": "parquet", "dir": str(self.data), **more}

    # What has arrived

    def check_arrived(self, double):
        for service in SERVICES:
            self.assertEqual(double.stacks(service), self.expected(service), service)
        self.assertEqual(double.total(), self.total())


class Arrives(Case):
    def test_every_sample_arrives_with_its_stack_and_only_once(self):
        self.fill(1, 5)
        pyroscope, otlp = self.double(), self.double()
        self.configure(self.pyroscope(pyroscope, tenant="t-1"), self.otlp(otlp), self.parquet())
        self.ship()
        for double in (pyroscope, otlp):
            self.check_arrived(double)
            self.assertEqual(double.deliveries, len(double.taken))
        self.assertEqual(pyroscope.headers[0]["x-scope-orgid"], "t-1")
        for sink in range(3):
            status = self.status(sink)
            self.assertEqual((status["windows"], status["samples"]), (5, self.total()), status)
            self.assertEqual((status["waiting"], status["lost"], status["refused"]), (0, 0, 0), status)
        # A second time there is nothing to do.
        self.ship()
        self.assertEqual(len(pyroscope.requests), 5)

    def test_labels_versions_and_containers(self):
        self.fill(1, 1)
        pyroscope, otlp = self.double(), self.double()
        head = '[labels]\nnamespace = "shop"\ncluster = "eu-1"\nversion = "build-id"\n'
        self.configure(self.pyroscope(pyroscope), self.otlp(otlp), head=head)
        self.ship()
        labels = {it[0]["service_name"]: it[0] for it in pyroscope.taken.values()}
        self.assertEqual(labels["api"]["version"], "a2" * 6)
        self.assertEqual(labels["api"]["namespace"], "shop")
        self.assertEqual(labels["api"]["cluster"], "eu-1")
        self.assertNotIn("host", labels["api"])
        about = {it[0]["service.name"]: it[0] for it in otlp.taken.values()}
        self.assertEqual(about["api"]["container.id"], "0123456789ab")
        self.assertEqual(about["api"]["host.name"], "db-01")
        self.assertNotIn("service.version", about["kworker"])

    def test_what_is_above_a_limit_is_divided_before_it_is_sent(self):
        # Pyroscope takes 16,000 samples in a profile.
        self.fill(1, 1, stacks=16100)
        pyroscope = self.double()
        self.configure(self.pyroscope(pyroscope))
        self.ship()
        self.assertGreaterEqual(len(pyroscope.taken), 2 * len(SERVICES))
        self.check_arrived(pyroscope)


class Schedules(Case):
    def set_weight(self, weight):
        messages.weight = weight

    def test_a_part_is_sent_everywhere_the_same_with_its_weight(self):
        self.addCleanup(self.set_weight, 1)
        for mode in ['mode = "cohort"\nshare = 0.5\nperiod = "1m"', 'mode = "duty"\non = "1m"\nperiod = "2m"']:
            with self.subTest(mode=mode):
                self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
                self.spool, self.data = self.folder / "spool", self.folder / "data"
                self.set_weight(2)
                self.fill(1, 40)
                pyroscope, otlp = self.double(), self.double()
                sinks = [self.pyroscope(pyroscope), self.otlp(otlp), self.parquet(roll="5m")]
                self.configure(*sinks, head=f"[schedule]\n{mode}\n")
                self.ship()
                status = [self.status(sink) for sink in range(3)]
                counts = {(it["windows"], it["left_out"], it["samples"], it["lost"], it["waiting"]) for it in status}
                [(windows, left_out, samples, lost, waiting)] = counts
                self.assertEqual((windows + left_out, lost, waiting), (40, 0, 0))
                # 20 of 40 in the mean; beyond these it is one of a million.
                self.assertTrue(5 <= windows <= 35, windows)
                # What is sent is whole windows: Pyroscope has the time of each.
                begins = {profile.time_nanos for _, profile, _ in pyroscope.taken.values()}
                self.assertEqual(len(begins), windows)
                self.assertEqual((pyroscope.total(), otlp.total()), (samples, samples))
                self.assertEqual({it.period for _, it, _ in otlp.taken.values()}, {10**9 // 19 * 2})
                out = subprocess.run(self.words("status"), check=True, capture_output=True, text=True).stdout
                self.assertIn("each sample counts 2.00 times", out)
                self.assertEqual(out.count(f"left out {left_out}"), 3, out)
                asked = [FLEET, "top", str(self.data), "--format", "json"]
                answer = json.loads(subprocess.run(asked, check=True, capture_output=True).stdout)
                self.assertAlmostEqual(answer["total"], samples * (10**9 // 19) * 2 / 1e9, places=3)
                self.assertEqual(answer["samples"], samples)
                self.assertTrue(any("counts up to 2.00 times" in note for note in answer["notes"]), answer["notes"])
                # Nothing is left that a second run would send or leave out.
                self.ship()
                self.assertEqual([self.status(sink) for sink in range(3)], status)


class Faults(Case):
    def both(self):
        doubles = [self.double(), self.double()]
        self.configure(self.pyroscope(doubles[0]), self.otlp(doubles[1]))
        return doubles

    def test_what_passes_is_tried_again_and_nothing_comes_twice(self):
        for fault, seconds in [
            (("status", 429, "2"), 2),
            (("status", 503), 0),
            (("status", 408), 0),
            (("status", 500), 0),
            (("reset",), 0),
        ]:
            with self.subTest(fault=fault):
                self.setUp()
                self.fill(1, 3)
                doubles = self.both()
                for double in doubles:
                    double.faults = [server.Fault(*fault)]
                process = self.start()
                for double in doubles:
                    self.wait("everything", lambda: double.total() == self.total())
                    self.check_arrived(double)
                    self.assertEqual(double.deliveries, len(double.taken))
                    waited = double.requests[1][0] - double.requests[0][0]
                    self.assertGreaterEqual(waited, seconds)
                process.kill()

    def test_an_answer_that_is_lost_makes_a_second_delivery_with_the_same_uuids(self):
        self.fill(1, 3)
        doubles = self.both()
        for double in doubles:
            double.faults = [server.Fault("unanswered")]
        self.start()
        for double in doubles:
            self.wait("all windows", lambda: double.deliveries > len(double.taken) and double.total() == self.total())
            self.wait("the last answer", lambda: self.status()["windows"] == 3)
            self.check_arrived(double)
            self.assertEqual(double.deliveries, len(double.taken) + len(SERVICES))

    def test_what_is_too_large_is_halved_once(self):
        self.fill(1, 1)
        doubles = self.both()
        for double in doubles:
            double.faults = [server.Fault("status", 413)]
        self.ship()
        for double in doubles:
            self.check_arrived(double)
            self.assertEqual([status for _, status in double.requests], [413, 200, 200])
        self.setUp()
        self.fill(1, 1)
        double = self.double()
        double.samples_max = 10
        self.configure(self.pyroscope(double))
        said = self.ship()
        self.assertEqual([status for _, status in double.requests], [413, 413, 413])
        self.assertEqual(self.status()["refused"], 2)
        self.assertIn("are refused: it answers 413", said)
        self.assertEqual(self.status()["waiting"], 0)

    def test_what_is_refused_is_counted_and_not_tried_again(self):
        self.fill(1, 2)
        doubles = self.both()
        for double in doubles:
            double.faults = [server.Fault("status", 400)]
        said = self.ship()
        self.assertIn("samples of window 1 are refused: it answers 400", said)
        for at, double in enumerate(doubles):
            self.assertEqual(double.total(), self.total([2]))
            self.assertEqual(self.status(at)["refused"], 1)

    def test_profiles_that_are_rejected_in_a_good_answer_are_counted(self):
        self.fill(1, 1)
        double = self.double()
        double.faults = [server.Fault("partial", number=3)]
        self.configure(self.otlp(double))
        self.assertIn("but for 3 profiles", self.ship())
        self.assertEqual(self.status()["refused"], 3)

    def test_a_token_is_read_again_and_never_told(self):
        self.fill(1, 2)
        double = self.double()
        double.token = "right-token"
        token = self.folder / "token"
        token.write_text("wrong-token\n")
        self.configure(self.pyroscope(double, token_file=str(token)))
        said = self.ship(code=1)
        self.assertIn("401", said)
        self.assertEqual(self.status()["waiting"], 2)
        process = self.start()
        self.wait("a refusal", lambda: len(double.requests) >= 2)
        token.write_text("right-token\n")
        self.wait("all windows", lambda: self.status()["windows"] == 2, 20)
        self.check_arrived(double)
        process.terminate()
        process.wait()
        said += process.stderr.read() + (self.folder / "state" / "pyroscope.json").read_text()
        self.assertNotIn("token\n", said.replace("bad token", ""))
        self.assertNotIn("wrong-token", said)
        self.assertNotIn("\x1b", said)

    def test_redirections_are_not_followed(self):
        self.fill(1, 1)
        double = self.double()
        double.faults = [server.Fault("status", 302)]
        self.configure(self.pyroscope(double))
        self.assertIn("302", self.ship(code=1))
        self.assertEqual(len(double.requests), 1)


class Outage(Case):
    def test_everything_is_sent_when_the_server_is_back(self):
        away = server.Double()
        port = away.port
        away.close()
        self.fill(1, 1)
        self.configure(
            {"type": "pyroscope", "url": f"http://127.0.0.1:{port}"},
            {"type": "otlp", "url": f"http://127.0.0.1:{port}"},
        )
        process = self.start()
        for number in range(2, 13):
            self.fill(number, 1)
            time.sleep(0.3)
        self.wait("an error", lambda: self.status()["error"] and self.status(1)["error"])
        self.assertEqual(self.status()["waiting"], 12)
        back = self.double(port=port)
        self.wait("all windows", lambda: self.status()["windows"] == 12 and self.status(1)["windows"] == 12, 120)
        # Each of the two sinks has sent everything, and nothing a second time.
        self.assertEqual(back.total(), 2 * self.total())
        self.assertEqual(back.deliveries, len(back.taken))
        process.terminate()
        process.wait()
        said = process.stderr.read()
        self.assertEqual(said.count("it takes windows again"), 2, said)

    def test_what_has_waited_is_sent_one_after_the_other(self):
        self.fill(1, 4, age=120)
        doubles = [self.double(), self.double()]
        # Windows of a minute: one each three seconds, and a quarter more or less.
        self.configure(self.pyroscope(doubles[0]), self.otlp(doubles[1]), catch_up=20)
        self.start()
        for double in doubles:
            self.wait("all windows", lambda: double.total() == self.total())
            self.check_arrived(double)
            self.assertEqual(double.deliveries, len(double.taken))
            at = [it[0] for it in double.requests]
            for before, after in zip(at, at[1:]):
                self.assertGreaterEqual(after - before, 2.25)

    def test_what_is_too_old_for_pyroscope_expires_and_says_so(self):
        self.fill(1, 4, age=54 * 60 + 30)
        self.fill(5, 2)
        pyroscope, otlp = self.double(), self.double()
        self.configure(self.pyroscope(pyroscope), self.otlp(otlp))
        said = self.ship()
        # The fourth began 55 minutes and a half ago.
        self.assertEqual(self.status()["expired"], 4, said)
        self.assertEqual(said.count("older than an hour"), 1, said)
        self.assertEqual(pyroscope.total(), self.total([5, 6]))
        self.assertEqual(otlp.total(), self.total())

    def test_windows_that_the_spool_has_no_more_are_counted(self):
        self.fill(1, 2)
        double = self.double()
        self.configure(self.pyroscope(double), self.parquet())
        self.ship()
        self.fill(3, 6)
        for path in sorted(self.spool.glob("*.pft"))[2:6]:
            path.unlink()
        damaged = sorted(self.spool.glob("*.pft"))[-1]
        damaged.write_bytes(b"no recording")
        said = self.ship()
        self.assertIn("4 windows before number 7 are lost", said)
        for sink in range(2):
            status = self.status(sink)
            self.assertEqual((status["lost"], status["unreadable"], status["windows"]), (4, 1, 3), status)
        self.assertEqual(double.total(), self.total([1, 2, 7]))

    def test_a_window_that_may_not_be_opened_is_not_given_up(self):
        self.fill(1, 3)
        double = self.double()
        self.configure(self.pyroscope(double), self.parquet())
        second = sorted(self.spool.glob("*.pft"))[1]
        second.rename(self.folder / "second")
        second.symlink_to(second.name)  # a link to itself: nobody can open it, root neither
        self.assertIn("window 2 cannot be opened", self.ship(code=1))
        self.assertEqual(double.total(), self.total([1]))
        second.unlink()
        (self.folder / "second").rename(second)
        self.ship()
        self.check_arrived(double)
        for sink in range(2):
            status = self.status(sink)
            self.assertEqual((status["windows"], status["unreadable"], status["lost"]), (3, 0, 0), status)

    def test_killed_at_any_moment_nothing_is_lost_and_nothing_comes_twice(self):
        random.seed(7)
        pyroscope, otlp = self.double(), self.double()
        self.configure(self.pyroscope(pyroscope), self.otlp(otlp), self.parquet(roll="10s"))
        self.fill(1, 2)
        for number in range(3, 43, 2):
            process = self.start()
            self.fill(number, 2)
            time.sleep(random.uniform(0.0, 0.35))
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.ship()
        for sink, double in enumerate([pyroscope, otlp]):
            self.check_arrived(double)
            status = self.status(sink)
            self.assertEqual((status["windows"], status["lost"], status["refused"]), (42, 0, 0), status)
        self.assertEqual(self.status(2)["windows"], 42)
        if rows := read_parquet(self.data):
            self.assertEqual(rows["total"], self.total())
        print("deliveries", pyroscope.deliveries, "profiles", len(pyroscope.taken), file=sys.stderr)


class Tls(Case):
    def certificates(self):
        """Two authorities: `ca` has signed a server and a client, `other` nothing."""
        run = lambda *words: subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        try:
            for name in ("ca", "other"):
                run("req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2", "-subj",
                    f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE")
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            print(f"skipped: TLS and certificates of clients: openssl: {error}", file=sys.stderr)
            self.skipTest("openssl is needed")
        for name, extension in (("server", "subjectAltName=IP:127.0.0.1"), ("client", "extendedKeyUsage=clientAuth")):
            run("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
            (self.folder / "ext").write_text(extension + "\nbasicConstraints=CA:FALSE\n")
            run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days",
                "2", "-out", f"{name}.pem", "-extfile", "ext")
        return lambda name: str(self.folder / name)

    def test_both_sides_know_each_other_by_certificates(self):
        path = self.certificates()
        tls = {"cert": path("server.pem"), "key": path("server.key"), "client_ca": path("ca.pem")}
        double = self.double(tls=tls)
        url = f"https://127.0.0.1:{double.port}"
        self.fill(1, 2)
        sink = {"type": "pyroscope", "url": url, "ca": path("ca.pem")}
        identity = {"cert": path("client.pem"), "key": path("client.key")}
        self.configure({**sink, **identity, "ca": path("other.pem")})
        self.ship(code=1)
        self.assertIn("ertificate", self.status()["error"])
        self.configure({"type": "pyroscope", "url": url})
        self.ship(code=1)
        self.configure(sink)
        self.ship(code=1)
        self.assertEqual(double.taken, {})
        self.configure({**sink, **identity})
        self.ship()
        self.check_arrived(double)


def read_parquet(data):
    """What two other readers find in the files; None where there is none."""
    found = []
    try:
        import duckdb

        ask = lambda sql: duckdb.sql(sql).fetchall()
        samples, stacks = f"'{data}/samples/*/*/*.parquet'", f"'{data}/stacks/*/*.parquet'"
        frames = f"'{data}/frames/*/*.parquet'"
        rows = ask(
            f"""with f as (select frame_id, string_agg(function, ';' order by inline_depth) name,
                       any_value(module) module, any_value(file_off) off from (select distinct * from {frames})
                       group by 1),
                s as (select distinct on (stack_id) stack_id, frames from {stacks}),
                p as (select stack_id, unnest(frames) frame_id, generate_subscripts(frames, 1) place from s),
                n as (select stack_id, string_agg(case when name = '' then '/usr/bin/' || module || '+0x' ||
                       lower(hex(off)) else name end, ';' order by place desc) path from p join f using (frame_id)
                       group by 1)
                select service, path, sum(value)::bigint from {samples} join n using (stack_id) group by all"""
        )
        total = ask(f"select sum(value)::bigint from {samples}")[0][0]
        found.append({"total": total, "rows": {(service, path): value for service, path, value in rows}})
    except ImportError as error:
        print(f"skipped: Parquet files as DuckDB reads them: {error}", file=sys.stderr)
    try:
        import pyarrow.compute
        import pyarrow.parquet

        files = sorted(pathlib.Path(data).glob("samples/*/*/*.parquet"))
        tables = [pyarrow.parquet.ParquetFile(file).read() for file in files]
        found.append({"total": sum(pyarrow.compute.sum(it["value"]).as_py() for it in tables)})
    except ImportError as error:
        print(f"skipped: Parquet files as Arrow for C++ reads them: {error}", file=sys.stderr)
    totals = {it["total"] for it in found}
    assert len(totals) <= 1, f"two readers find different sums: {totals}"
    return found[0] if found else None


class Parquet(Case):
    def test_other_readers_find_every_sample_with_its_stack(self):
        self.fill(1, 6)
        self.configure(self.parquet(roll="1m"))
        self.ship()
        read = read_parquet(self.data)
        if read is None:
            self.skipTest("the Python packages duckdb or pyarrow are needed")
        self.assertEqual(read["total"], self.total())
        expected = {}
        for service in SERVICES:
            for path, value in self.expected(service).items():
                expected[service, path] = value
        if "rows" in read:
            self.assertEqual(read["rows"], expected)

    def test_a_file_that_is_written_once_more_takes_its_own_place(self):
        self.fill(1, 3)
        self.configure(self.parquet())
        self.ship()
        before = sorted(self.data.rglob("*.parquet"))
        (self.folder / "state" / "parquet.json").unlink()
        self.ship()
        self.assertEqual(sorted(self.data.rglob("*.parquet")), before)
        hidden = [path for path in self.data.rglob(".*")]
        self.assertEqual(hidden, [])


if __name__ == "__main__":
    unittest.main()
