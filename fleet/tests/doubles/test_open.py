"""`proftop-fleet open pyroscope+http://…`, and `proftop open` of the same, against a double of Pyroscope's query service, which decodes what it is
asked by Google's protobuf and refuses fields that it does not know."""

import gzip
import http.server
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

try:
    import messages
except ImportError as error:
    print(f"skipped: opening what a server keeps: {error}", file=sys.stderr)
    messages = None

FLEET = os.environ.get("PROFTOP_FLEET", "proftop-fleet")
# proftop, if it is where it finds this proftop-fleet.
PROFTOP = shutil.which(pathlib.Path(FLEET).with_name("proftop"))
TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
NEW = "/querier.v1.QuerierService/SelectMergeStacktraces"
OLD = "/querier.v1.QuerierService/SelectMergeProfile"

# api/querier/v1/querier.proto of github.com/grafana/pyroscope.
REQUEST = [(1, "profile_typeID", "string"), (2, "label_selector", "string"), (3, "start", "int64"), (4, "end", "int64")]
QUERIER = {
    "Stacktraces": [*REQUEST, (5, "max_nodes", "int64"), (6, "format", "int64")],
    "Merge": [*REQUEST, (5, "max_nodes", "int64")],
    "Answer": [(1, "flamegraph", "bytes"), (2, "tree", "bytes"), (5, "pprof", "PprofProfile")],
    "PprofProfile": [(1, "profile", "bytes")],
}


def pprof(names, value=7_000_000):
    """A profile with one stack, outermost first."""
    profile = messages.Profile()
    texts = ["", "cpu", "nanoseconds", *names]
    profile.string_table.extend(texts)
    profile.sample_type.add(type=1, unit=2)
    profile.period_type.type, profile.period_type.unit, profile.period = 1, 2, 1_000_000
    profile.time_nanos, profile.duration_nanos = time.time_ns(), 60 * 10**9
    for number, name in enumerate(names, 1):
        profile.function.add(id=number, name=texts.index(name))
        profile.location.add(id=number).line.add(function_id=number)
    if names:
        profile.sample.add(location_id=range(len(names), 0, -1), value=[value])
    return profile.SerializeToString()


def lower(headers):
    return {name.lower(): value for name, value in headers.items()}


class Server:
    """Answers as `kind` says, and keeps what it was asked."""

    def __init__(self, kind, profile=b""):
        self.asked, self.wrong = [], []
        self.types = messages.classes("querier", QUERIER)
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                try:
                    messages.need(self.headers["Content-Type"] == "application/proto", "content type")
                    messages.need(self.headers["Connect-Protocol-Version"] == "1", "version of Connect")
                    cls = {NEW: "Stacktraces", OLD: "Merge"}[self.path]
                    server.asked.append((self.path, messages.strict(server.types[cls], body), lower(self.headers)))
                except Exception as error:
                    server.wrong.append(repr(error))
                server.answer(self, kind, profile)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"pyroscope+http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, handler, kind, profile):
        status, headers, is_new = 200, {}, handler.path == NEW
        whole = self.types["Answer"]()
        whole.pprof.profile = profile
        body = whole.SerializeToString() if is_new else profile
        length = None
        if kind == "older" and is_new:
            body = self.types["Answer"](flamegraph=b"\x0a\x05total").SerializeToString()
        elif kind == "unknown" and is_new:
            status, body = 501, b'{"code":"unimplemented"}'
        elif isinstance(kind, int):
            status, body = kind, b'{"code":"x","message":"secret-token \x1b[31m"}'
            headers = {"Location": "http://127.0.0.1:1/"} if kind == 302 else {}
        elif kind == "page":
            body = b"<!DOCTYPE html><html>Grafana</html>"
        elif kind == "cut":
            length = len(body) + 100
        elif kind == "large":
            length, body = 65 << 20, bytes(65 << 20)
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(length or len(body)))
        handler.end_headers()
        try:
            handler.wfile.write(body)
        except OSError:
            pass  # It has read as much as it wants.


@unittest.skipIf(messages is None, "the Python package protobuf is needed")
class Open(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.token = self.folder / "token"
        self.token.write_text("secret-token\n")
        self.out = self.folder / "out.pb.gz"

    def server(self, kind, profile=None):
        server = Server(kind, pprof(["main", "parse"]) if profile is None else profile)

        def end():
            server.server.shutdown()
            server.server.server_close()
            self.assertEqual(server.wrong, [])

        self.addCleanup(end)
        return server

    def run_open(self, url, *words):
        command = [FLEET, "open", url, "-o", str(self.out), "--token-file", str(self.token), "--tenant", "shop", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def opened(self, server, query=""):
        out = self.run_open(server.url + query)
        self.assertEqual((out.returncode, out.stderr), (0, ""))
        return messages.strict(messages.Profile, gzip.decompress(self.out.read_bytes()))

    def test_a_profile_is_asked_for_and_written_as_it_is(self):
        server = self.server("new")
        before = time.time() * 1000
        profile = self.opened(server, '?q={service_name="a b"}&from=now-2h&until=1h')
        self.assertEqual(profile.SerializeToString(), pprof_of(profile))
        self.assertEqual(list(profile.string_table)[3:], ["main", "parse"])
        self.assertEqual(profile.sample[0].value[0], 7_000_000)
        [(path, asked, headers)] = server.asked
        self.assertEqual((path, asked.format), (NEW, 4))
        self.assertEqual((asked.profile_typeID, asked.label_selector), (TYPE, '{service_name="a b"}'))
        self.assertEqual(asked.end - asked.start, 3_600_000)
        self.assertLess(abs(before - 3_600_000 - asked.end), 60_000)
        self.assertEqual(headers["authorization"], "Bearer secret-token")
        self.assertEqual(headers["x-scope-orgid"], "shop")

    def test_an_older_server_is_asked_in_the_older_way(self):
        for kind in ["older", "unknown"]:
            server = self.server(kind)
            profile = self.opened(server, "?type=memory:inuse_space:bytes:space:bytes")
            self.assertEqual(list(profile.string_table)[3:], ["main", "parse"])
            self.assertEqual([path for path, *_ in server.asked], [NEW, OLD])
            self.assertEqual({asked.profile_typeID for _, asked, _ in server.asked}, {"memory:inuse_space:bytes:space:bytes"})
            self.out.unlink()

    def test_what_goes_wrong_is_one_sentence(self):
        for kind, profile, expected in [
            (401, None, "--token-file"),
            (403, None, "--tenant"),
            (404, None, "not of Grafana"),
            (302, None, "redirections are not followed"),
            (500, None, "500 Internal Server Error"),
            (429, None, "429 Too Many Requests"),
            ("cut", None, "is cut off"),
            ("large", None, "more than 64 MB"),
            ("page", None, "is not one of Pyroscope"),
            ("new", b"", "no samples"),
            ("new", "none", "no samples"),
            ("new", b"not a profile at all", "no pprof"),
            ("older", b"\x1f\x8b\x08broken", "no pprof"),
        ]:
            with self.subTest(kind=kind, profile=profile):
                server = self.server(kind, pprof([]) if profile == "none" else profile)
                out = self.run_open(server.url)
                self.assertEqual(out.returncode, 1, out.stderr)
                self.assertEqual(out.stderr.count("\n"), 1, out.stderr)
                self.assertIn(expected, out.stderr)
                self.assertNotIn("secret-token", out.stderr)
                self.assertNotIn("\x1b", out.stderr)
                self.assertEqual(out.stdout, "")
                self.assertFalse(self.out.exists())

    def test_standard_output_has_the_profile_and_nothing_else(self):
        server = self.server("new")
        out = subprocess.run([FLEET, "open", server.url, "--output=-"], capture_output=True, timeout=60)
        self.assertEqual((out.returncode, out.stderr), (0, b""))
        profile = messages.strict(messages.Profile, gzip.decompress(out.stdout))
        self.assertEqual(list(profile.string_table)[3:], ["main", "parse"])
        self.assertFalse(pathlib.Path("-").exists())

    @unittest.skipUnless(PROFTOP, "proftop is not beside proftop-fleet: cargo build -p proftop")
    def test_proftop_opens_it(self):
        server = self.server("new", pprof(["main", "parse"], 70_000_000))
        command = [PROFTOP, "open", "--plain", "--fresh", server.url + '?q={service_name="a b"}', "--"]
        command += ["--token-file", str(self.token), "--tenant", "shop"]
        out = subprocess.run(command, input="top\n", capture_output=True, text=True, timeout=60)
        self.assertEqual((out.returncode, out.stderr), (0, ""))
        self.assertIn("parse", out.stdout)
        [(_, asked, headers)] = server.asked
        self.assertEqual(asked.label_selector, '{service_name="a b"}')
        self.assertEqual(headers["authorization"], "Bearer secret-token")
        self.assertEqual(headers["x-scope-orgid"], "shop")
        # What goes wrong is the sentence of proftop-fleet, and nothing else.
        for kind, words, code, expected in [
            (401, [], 1, "--token-file"),
            ("cut", [], 1, "is cut off"),
            ("new", ["--tenant", "a b"], 2, "no header may have"),
            ("new", ["--speed", "1"], 2, "does not take the options"),
        ]:
            with self.subTest(kind=kind, words=words):
                command = [PROFTOP, "open", "--plain", "--fresh", self.server(kind).url, "--", *words]
                out = subprocess.run(command, input="top\n", capture_output=True, text=True, timeout=60)
                self.assertEqual((out.returncode, out.stderr.count("\n")), (code, 1), out.stderr)
                self.assertIn(expected, out.stderr)
                self.assertTrue(out.stderr.startswith("proftop: "), out.stderr)

    def test_nobody_is_asked_what_is_mistyped_and_no_file_is_replaced(self):
        server = self.server("new")
        out = self.run_open(server.url + "?from=soon")
        self.assertEqual((out.returncode, server.asked), (2, []))
        self.out.write_text("mine")
        out = self.run_open(server.url)
        self.assertEqual((out.returncode, server.asked), (2, []))
        self.assertEqual(self.out.read_text(), "mine")

    def test_a_server_that_is_away_is_one_sentence(self):
        out = self.run_open("pyroscope+http://127.0.0.1:1/")
        self.assertEqual((out.returncode, out.stderr.count("\n")), (1, 1), out.stderr)


def pprof_of(profile):
    """What the double has sent, but for its time."""
    copy = messages.Profile.FromString(pprof(list(profile.string_table)[3:]))
    copy.time_nanos = profile.time_nanos
    return copy.SerializeToString()


if __name__ == "__main__":
    unittest.main()
