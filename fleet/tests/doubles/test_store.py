"""`proftop-fleet` on object storage: what the shipper writes there, and what questions read, against moto's S3 and the
faults of a store."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock

import test_ship

try:
    import store
except ImportError as error:
    print(f"skipped: object storage: {error}", file=sys.stderr)
    store = None

FLEET = test_ship.FLEET
PROFTOP = shutil.which(pathlib.Path(FLEET).with_name("proftop"))
MAKE_FLEET = str(pathlib.Path(test_ship.MAKE_SPOOL).with_name("make_fleet"))
PLACE = "s3://profiles/v1"


class Case(test_ship.Case):
    def setUp(self):
        if store is None:
            self.skipTest("the Python package moto[server] is needed")
        super().setUp()
        self.store = store.Store()
        self.addCleanup(self.store.close)
        environment = self.store.environment()
        self.enterContext(unittest.mock.patch.dict("os.environ", environment, clear=True))

    def bucket(self, **more):
        return {"type": "parquet", "name": "s3", "url": PLACE, **more}

    def ask(self, *words, code=0, **environment):
        """Standard output of a question, or the sentence that it fails with."""
        with unittest.mock.patch.dict("os.environ", environment):
            done = subprocess.run([FLEET, *map(str, words)], capture_output=True, timeout=120)
        said = done.stderr.decode()
        self.assertEqual(done.returncode, code, said)
        if code:
            self.assertEqual((done.stdout, said.count("\n")), (b"", 1), said)
            self.assertTrue(said.startswith("proftop-fleet: "), said)
            return said.removeprefix("proftop-fleet: ").rstrip()
        return done.stdout

    def rows(self, place, question="top", *words):
        """The rows of an answer, without the last digits of sums, which depend on the order of files."""
        more = ["--format", "json", "--top", "100000", *words]
        answer = json.loads(self.ask(question, place, *more))
        short = lambda it: round(it, 9) + 0.0 if isinstance(it, float) else it
        # Of a difference of nothing but last digits there is a chance, and of none there is not.
        short_row = lambda row: {key: short(value) for key, value in row.items() if "chance" not in key}
        rows = [json.dumps(short_row(row)) for row in answer["rows"]]
        self.assertTrue(rows)
        return sorted(rows), answer.get("samples")

    def stored(self):
        """The sum of all samples, whatever the file that they are in."""
        return self.rows(PLACE)[1]


class Ships(Case):
    def test_a_bucket_has_what_a_folder_has(self):
        self.fill(1, 5)
        self.configure(self.parquet(roll="2m"), self.bucket(roll="2m"))
        self.ship()
        files = {str(it.relative_to(self.data)): it.read_bytes() for it in self.data.rglob("*.parquet")}
        stored = {it.removeprefix("v1/"): self.store.bytes(it) for it in self.store.keys()}
        self.assertEqual(stored, files)
        for sink in range(2):
            status = self.status(sink)
            self.assertEqual((status["windows"], status["samples"]), (5, self.total()), status)
            self.assertEqual((status["waiting"], status["lost"], status["retries"]), (0, 0, 0), status)
        # A second time there is nothing to do.
        self.ship()
        self.assertEqual(len([it for it in self.store.requests if it[0] == "PUT"]), len(files))
        # Without the state everything is written once more, under the same keys.
        (self.folder / "state" / "s3.json").unlink()
        self.ship()
        self.assertEqual({it.removeprefix("v1/") for it in self.store.keys()}, set(files))
        self.assertEqual(self.stored(), self.total())

    def test_killed_at_any_moment_nothing_is_lost_and_nothing_is_twice(self):
        random.seed(11)
        # Answers take a while, so that many of the kills are in the middle of a file.
        self.store.fault = lambda *_: time.sleep(0.03)
        self.configure(self.bucket(roll="10s"))
        self.fill(1, 2)
        unfinished = 0
        for number in range(3, 43, 2):
            puts = lambda: [it[0] for it in self.store.requests].count("PUT")
            before, process = puts(), self.start()
            self.fill(number, 2)
            if number % 4 == 1:
                # Half of the kills wait until something is written, however long the shipper takes until then.
                deadline = time.monotonic() + 2
                while puts() == before and time.monotonic() < deadline:
                    time.sleep(0.002)
            else:
                time.sleep(random.uniform(0.0, 0.35))
            process.send_signal(signal.SIGKILL)
            process.wait()
            state = json.loads((self.folder / "state" / "s3.json").read_text() or "{}")
            unfinished += state["plan"] is not None
        self.assertGreater(unfinished, 0, "no kill was in the middle of a file")
        self.ship()
        status = self.status()
        self.assertEqual((status["windows"], status["lost"], status["samples"]), (42, 0, self.total()), status)
        self.assertEqual(self.stored(), self.total())
        print("killed in the middle of a file", unfinished, "of 20", file=sys.stderr)

    def test_an_outage_delays_and_neither_loses_nor_doubles(self):
        for fault in ("SlowDown", "InternalError", "reset", "forget"):
            with self.subTest(fault=fault):
                self.folder = self.folder / fault
                self.folder.mkdir()
                self.spool, self.windows = self.folder / "spool", {}
                place = f"{PLACE}/{fault}"
                self.fill(1, 3, age=600)
                self.configure(self.bucket(url=place, roll="1m"))
                before = len(self.store.requests)
                self.store.fault = lambda method, key, number: fault if number - before <= 4 else None
                said = self.ship(code=1)
                self.assertIn(f"cannot write to {place}: ", said)
                self.assertEqual(said.count("cannot write"), 2, said)
                self.assertEqual(self.status()["windows"], 0)
                process = self.start()
                self.wait("everything is there", lambda: self.status()["windows"] == 3)
                process.kill()
                status = self.status()
                self.assertEqual((status["lost"], status["samples"], status["error"]), (0, self.total(), None), status)
                self.assertGreaterEqual(status["retries"], 3)
                self.assertEqual(self.rows(place)[1], self.total())

    def test_windows_that_come_while_the_store_is_away_do_not_grow_the_file_that_may_be_there(self):
        # The first samples are taken, and the answer is lost: is the file there, and with what?
        forgets = lambda method, key, number: "forget" if key.startswith("v1/samples") else None
        self.store.fault = forgets
        # Their hour is over, and half an hour more, within which the host's moment to write is.
        self.fill(1, 2, age=7200)
        self.configure(self.bucket(roll="1h"))
        process = self.start()
        self.wait("the answer is lost", lambda: self.status()["retries"] > 0)
        [first] = self.store.keys("v1/samples/")
        content = self.store.bytes(first)
        self.fill(3, 2, age=7200)
        self.store.fault = lambda *_: None
        self.wait("everything is there", lambda: self.status()["windows"] == 4)
        process.kill()
        self.assertEqual(self.store.bytes(first), content)
        self.assertGreaterEqual(len(self.store.keys("v1/samples/")), 2)
        self.assertEqual(self.stored(), self.total())

    def test_what_is_wrong_is_said_and_nothing_is_given_up(self):
        self.fill(1, 2)
        for fault, expected in [
            ("AccessDenied", "no right to that (AccessDenied)"),
            ("InvalidAccessKeyId", "credentials are not accepted (InvalidAccessKeyId)"),
            ("PermanentRedirect", "another region"),
        ]:
            self.configure(self.bucket())
            self.store.fault = lambda *_: fault
            self.assertIn(expected, self.ship(code=1))
            shutil.rmtree(self.folder / "state")
        # The second time it asks whether the file is there, and such answers say less.
        self.store.fault = lambda *_: "AccessDenied"
        self.ship(code=1)
        self.assertIn("not accepted, or have no right to that (403)", self.ship(code=1))
        self.store.fault = lambda *_: None
        self.configure(self.bucket(url="s3://elsewhere/v1"))
        self.assertIn("cannot write to s3://elsewhere/v1: there is no such bucket", self.ship(code=1))
        self.configure(self.bucket())
        self.ship()
        self.assertEqual(self.stored(), self.total())
        self.assertEqual(self.status()["error"], None)

    def test_a_store_that_answers_nothing_is_left_after_a_time(self):
        self.fill(1, 2)
        self.configure(self.bucket())
        self.store.fault = lambda *_: "hang"
        with unittest.mock.patch.dict("os.environ", {"AWS_TIMEOUT": "1s"}):
            self.assertIn("does not answer in time", self.ship(code=1))
        # Without that time it waits for a minute, and ends at once by a signal.
        process = self.start()
        self.wait("it waits", lambda: len(self.store.requests) >= 2)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20), -signal.SIGINT)


class Reads(Case):
    def setUp(self):
        super().setUp()
        words = [self.data, "3", "130", "2", "30", "40", "2", "0.1"]
        subprocess.run([MAKE_FLEET, *map(str, words)], check=True, capture_output=True)
        self.store.fill(self.data, "v1")

    def test_answers_are_those_of_the_same_files_in_a_folder(self):
        sides = ["--a", "version=v0", "--b", "version=v1"]
        for question, *words in [
            ("top",),
            ("top", "--by", "host,service"),
            ("top", "--since", "2026-11-21T14:05", "--until", "2026-11-21T14:17"),
            ("hosts", "--function", "planted"),
        ]:
            self.assertEqual(self.rows(PLACE, question, *words), self.rows(self.data, question, *words), question)
        self.assertEqual(self.rows(PLACE, "diff", *sides), self.rows(self.data, "diff", *sides))
        for word in ("flame", "open"):
            made = []
            for place in (PLACE, self.data):
                file = self.folder / f"{word}{len(made)}.pft"
                if word == "flame":
                    self.ask("flame", place, "--host", "host-00001", "-o", file)
                else:
                    self.ask("open", f"parquet+{place}?host=host-00001", "-o", file)
                made.append(file.read_bytes())
            self.assertEqual(*made)

    def test_proftop_opens_it(self):
        if PROFTOP is None:
            print("skipped: proftop open parquet+s3://…: there is no proftop beside proftop-fleet", file=sys.stderr)
            self.skipTest("proftop is not built")
        told = []
        for place in (PLACE, self.data):
            command = [PROFTOP, "open", "--plain", "--fresh", f"parquet+{place}?service=service-0"]
            told.append(subprocess.run(command, input="top\n", capture_output=True, text=True, timeout=120))
            self.assertEqual((told[-1].returncode, told[-1].stderr), (0, ""))
            self.assertIn("service-0", told[-1].stdout)
        self.assertEqual(told[0].stdout.replace(PLACE, str(self.data)), told[1].stdout)

    def test_only_objects_of_that_time_are_read(self):
        self.store.requests.clear()
        self.rows(PLACE, "top", "--since", "2026-11-21T16:05")
        hours = {key.split("/")[3] for _, key, _ in self.store.requests if key.startswith("v1/samples/")}
        # A file that begins at 15:59 may have windows until 16:59.
        self.assertEqual(hours, {"hour=15", "hour=16"})
        said = self.ask("top", PLACE, "--since", "2026-11-23", code=1)
        self.assertIn(f"{PLACE} has no samples of that time, but of 2026-11-21", said)
        said = self.ask("top", "s3://profiles/v2", code=1)
        self.assertIn("s3://profiles/v2 has no samples", said)

    def test_a_folder_with_fewer_files_is_made_of_it(self):
        out = self.folder / "compact"
        self.ask("compact", PLACE, "-o", out)
        self.assertEqual(self.rows(out), self.rows(self.data))
        self.assertIn("a folder is written", self.ask("compact", PLACE, "-o", "s3://profiles/v2", code=2))
        hours = [self.folder / name for name in ("hours-a", "hours-b")]
        said = [self.ask("rollup", place, "-o", out) for place, out in zip((PLACE, self.data), hours)]
        self.assertEqual(*[it.split(b": ")[1] for it in said])

    def test_each_mistake_is_one_sentence(self):
        for fault, expected in [
            ("AccessDenied", "no right to that (AccessDenied)"),
            ("SignatureDoesNotMatch", "credentials are not accepted (SignatureDoesNotMatch)"),
            ("AuthorizationHeaderMalformed", "another region, eu-west-1: set AWS_REGION"),
            ("PermanentRedirect", "another region"),
        ]:
            self.store.fault = lambda *_: fault
            said = self.ask("top", PLACE, code=1)
            self.assertIn(expected, said)
            self.assertIn("s3://profiles/v1", said)
        self.store.fault = lambda *_: None
        self.assertIn("s3://nowhere/v1/samples: there is no such bucket", self.ask("top", "s3://nowhere/v1", code=1))
        self.assertIn("set AWS_ALLOW_HTTP=true", self.ask("top", PLACE, code=1, AWS_ALLOW_HTTP="false"))
        self.assertIn("no name of a bucket", self.ask("top", "s3://a:b@c/v1", code=2))
        self.assertIn("AWS_CA_BUNDLE", self.ask("top", PLACE, code=2, AWS_CA_BUNDLE="/nowhere"))
        dead = {"AWS_METADATA_ENDPOINT": "http://127.0.0.1:1"}
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            del os.environ[name]
        self.assertIn("there are no credentials", self.ask("top", PLACE, code=1, **dead))

    def test_keys_of_the_files_of_a_user_are_used(self):
        expected = self.rows(PLACE)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            del os.environ[name]
        os.environ |= {"AWS_METADATA_ENDPOINT": "http://127.0.0.1:1", "HOME": str(self.folder)}
        (self.folder / ".aws").mkdir()
        keys = "aws_access_key_id = test\naws_secret_access_key = test\n"
        (self.folder / ".aws" / "credentials").write_text(f"[team]\n{keys}")
        self.assertIn("there are no credentials", self.ask("top", PLACE, code=1))
        os.environ["AWS_PROFILE"] = "team"
        self.assertEqual(self.rows(PLACE), expected)
        self.assertIn("no file has the profile x", self.ask("top", PLACE, code=2, AWS_PROFILE="x"))

    def test_a_failure_that_passes_is_not_seen_and_another_one_ends(self):
        expected = self.rows(PLACE)
        for fault in ("SlowDown", "reset"):
            self.store.fault = lambda method, key, number: fault if number % 7 == 0 else None
            self.assertEqual(self.rows(PLACE), expected, fault)
        self.store.fault = lambda *_: "SlowDown"
        self.assertIn("the store answers 503 (SlowDown)", self.ask("top", PLACE, code=1))
        self.store.fault = lambda *_: "hang"
        self.assertIn("does not answer in time", self.ask("top", PLACE, code=1, AWS_TIMEOUT="1s"))

    def test_an_object_that_is_removed_meanwhile_is_a_sentence_and_no_smaller_number(self):
        # The end of each object is read before the engine reads it.
        for table in ("samples", "stacks", "frames", "hosts"):
            key = self.store.keys(f"v1/{table}/")[0]
            content, asked = self.store.bytes(key), []
            def fault(method, name, number):
                if name == key:
                    asked.append(method)
                    if len(asked) == 2:
                        self.store.client.delete_object(Bucket=store.BUCKET, Key=key)
            self.store.fault = fault
            said = self.ask("top", PLACE, code=1)
            self.assertIn(f"an object in {PLACE}: it is gone", said)
            self.store.fault = lambda *_: None
            self.store.client.put_object(Bucket=store.BUCKET, Key=key, Body=content)

    def test_ctrl_c_ends_a_question_at_once(self):
        # In lists, in the ends of objects, and while the engine reads.
        for beginning, seen in (("", 1), ("v1/samples/", 1), ("v1/frames/", 4)):
            self.store.requests.clear()
            hit = []
            def fault(method, key, number):
                if key.startswith(beginning):
                    hit.append(key)
                    return "hang" if len(hit) >= seen else None
            self.store.fault = fault
            process = subprocess.Popen([FLEET, "top", PLACE], stderr=subprocess.PIPE, text=True)
            self.processes.append(process)
            self.wait("it waits", lambda: len(hit) >= seen)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=20), 130, beginning)

    def test_an_object_that_is_none_of_ours_is_named(self):
        key = "v1/samples/date=2026-11-21/hour=14/x.parquet"
        of_hosts = self.store.bytes(self.store.keys("v1/hosts")[0])
        for content in (b"no Parquet, but long enough to be some", b"", of_hosts):
            self.store.client.put_object(Bucket=store.BUCKET, Key=key, Body=content)
            said = self.ask("top", PLACE, code=1)
            self.assertIn(f"s3://profiles/{key} ", said)


class Compacts(Case):
    """`compact --in-place`: a folder has one object afterwards, and at no moment does a sample count twice or not."""

    def setUp(self):
        super().setUp()
        self.make(self.data, 3)
        self.store.fill(self.data, "v1")
        self.expected = self.rows(self.data)

    def make(self, folder, hosts, seed=7):
        words = [folder, hosts, "70", "2", "20", "30", "2", "0.1", seed]
        subprocess.run([MAKE_FLEET, *map(str, words)], check=True, capture_output=True)

    def compact(self):
        return self.ask("compact", PLACE, "--in-place").decode()

    def check_one_each(self):
        keys = self.store.keys("v1/")
        folders = {key.rpartition("/")[0] for key in keys}
        self.assertEqual(len(folders), 3 + 2)
        for folder in folders:
            inside = [key for key in keys if key.rpartition("/")[0] == folder]
            self.assertEqual(len(inside), 2, inside)
            self.assertEqual(inside[0], f"{folder}/_compacted.json.gz")
            self.assertTrue(inside[1].startswith(f"{folder}/compacted-"), inside)

    def late(self, host="host-00009"):
        """Files of a host that come later, in the bucket and in the folder."""
        other = self.folder / host
        self.make(other, 1, seed=9)
        for file in [*other.rglob("*.parquet")]:
            name = file.name.replace("host-00000", host)
            for place in (file.with_name(name), self.data / file.relative_to(other).with_name(name)):
                if place != file:
                    shutil.copy(file, place)
            file.unlink()
        self.store.fill(other, "v1")
        self.expected = self.rows(self.data)

    def test_each_hour_and_each_day_are_one_object(self):
        self.assertIn("of 15 objects, are in 2 objects now", self.compact())
        self.assertEqual(self.rows(PLACE), self.expected)
        self.check_one_each()
        for question, *words in [("hosts", "--function", "planted"), ("top", "--until", "2026-11-21T14:10")]:
            self.assertEqual(self.rows(PLACE, question, *words), self.rows(self.data, question, *words))
        # What other engines find by names, without the list, is right as well.
        plain = self.store.copy("v1", self.folder / "copy")
        self.assertEqual(self.rows(plain), self.expected)
        # There is nothing more to do.
        self.store.requests.clear()
        self.assertIn("each hour of samples of that time is one object already", self.compact())
        self.assertFalse([it for it in self.store.requests if it[0] not in ("GET", "HEAD")], self.store.requests)
        # What comes later is added.
        self.late()
        self.assertEqual(self.rows(PLACE), self.expected)
        self.compact()
        self.assertEqual(self.rows(PLACE), self.expected)
        self.check_one_each()

    def test_only_whole_days_and_only_object_storage(self):
        said = self.ask("compact", PLACE, "--in-place", "--since", "2026-11-21T10:00", code=1)
        self.assertIn("no day that is in that time as a whole", said)
        self.assertIn("--in-place is of object storage", self.ask("compact", self.data, "--in-place", code=2))
        self.assertIn("-o FOLDER", self.ask("compact", PLACE, code=2))
        self.assertFalse([it for it in self.store.requests if it[0] not in ("GET", "HEAD")])

    def test_killed_at_any_write_every_sample_counts_once(self):
        # A folder takes three writes: the object, the list, and the removal of what they replace. The first folder
        # has frames, and the fourth one samples.
        for write in (1, 2, 3, 10, 11, 12):
            # It is killed before the store has it, and after.
            for fault in ("hang", "stall"):
                self.store.clear()
                self.store.fill(self.data, "v1")
                seen = []
                def at_write(method, key, number):
                    if method in ("PUT", "POST"):
                        seen.append(key)
                        return fault if len(seen) == write else None
                self.store.fault = at_write
                words = [FLEET, "compact", PLACE, "--in-place"]
                process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                self.processes.append(process)
                self.wait("it writes", lambda: len(seen) == write)
                if fault == "stall":
                    self.wait("the store has it", lambda: self.store.stalled)
                process.kill()
                process.wait()
                self.store.fault = lambda *_: None
                self.assertEqual(self.rows(PLACE), self.expected, (write, fault))
            self.compact()
            self.assertEqual(self.rows(PLACE), self.expected, write)
            self.check_one_each()
        self.late()
        self.compact()
        self.assertEqual(self.rows(PLACE), self.expected)
        self.check_one_each()

    def test_who_asks_meanwhile_has_all_of_it_or_a_sentence(self):
        self.store.fault = lambda method, key, number: time.sleep(0.5) if method != "GET" else None
        asked, gone = 0, 0
        process = subprocess.Popen([FLEET, "compact", PLACE, "--in-place"], stdout=subprocess.PIPE, text=True)
        while process.poll() is None:
            words = [FLEET, "top", PLACE, "--format", "json", "--top", "100000"]
            done = subprocess.run(words, capture_output=True, text=True, timeout=120)
            asked += 1
            if done.returncode:
                gone += 1
                self.assertIn("ask again", done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)
            else:
                self.assertEqual(json.loads(done.stdout)["samples"], self.expected[1])
        process.stdout.close()
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.rows(PLACE), self.expected)
        print("asked", asked, "times while it was compacted,", gone, "times without an answer", file=sys.stderr)

    def test_of_two_at_once_none_loses_what_the_other_has(self):
        for _ in range(4):
            both = [subprocess.Popen([FLEET, "compact", PLACE, "--in-place"], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True) for _ in range(2)]
            for process in both:
                _, said = process.communicate(timeout=120)
                if process.returncode:
                    self.assertEqual((process.returncode, said.count("\n")), (1, 1), said)
                    self.assertRegex(said, "has compacted it meanwhile|ask again")
            self.assertEqual(self.rows(PLACE), self.expected)
            self.late(f"host-1{len(self.expected[0]):04}")
        self.compact()
        self.assertEqual(self.rows(PLACE), self.expected)
        self.check_one_each()

    def test_a_store_that_fails_changes_nothing_or_everything(self):
        for fault in ("AccessDenied", "SlowDown"):
            for method in ("PUT", "POST"):
                self.store.fault = lambda it, key, number: fault if it == method else None
                self.ask("compact", PLACE, "--in-place", code=1)
                self.store.fault = lambda *_: None
                self.assertEqual(self.rows(PLACE), self.expected)
                self.late(f"{fault}-{method}")
        # The answer to the list is lost, but the list is there.
        lost = []
        def fault(method, key, number):
            if method == "PUT" and key.endswith("_compacted.json.gz") and not lost:
                return lost.append(key) or "forget"
        self.store.fault = fault
        self.compact()
        self.assertEqual(len(lost), 1)
        self.assertEqual(self.rows(PLACE), self.expected)
        self.check_one_each()

    def test_what_a_shipper_wrote_before_it_was_killed_is_not_written_once_more(self):
        self.store.fault = lambda method, key, number: "forget" if "/samples/" in key and method == "PUT" else None
        place = "s3://profiles/v3"
        self.fill(1, 3, age=600)
        self.configure(self.bucket(url=place))
        self.ship(code=1)
        self.fill(4, 2, age=300)
        self.store.fault = lambda *_: None
        # The first file and one of another host become one.
        self.store.client.copy_object(Bucket=store.BUCKET, Key=self.store.keys("v3/samples/")[0] + ".parquet",
                                      CopySource=f"{store.BUCKET}/" + self.store.keys("v3/samples/")[0])
        other = self.rows(place)[1] // 2
        self.ask("compact", place, "--in-place")
        before = self.store.keys("v3/samples/")
        self.assertTrue(all("compacted" in key for key in before), before)
        self.ship()
        self.assertEqual(self.rows(place)[1], self.total() + other)
        self.assertEqual(self.status()["windows"], 5)


if __name__ == "__main__":
    unittest.main()
