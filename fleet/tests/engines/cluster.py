"""A cluster of Spark on this machine: a master, two workers and a driver."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

from shards import free_ports


def python():
    """A Python that has pyspark, or None."""
    return os.environ.get("SPARK_PYTHON")


class Cluster:
    def __init__(self, python, folder):
        self.folder = pathlib.Path(folder)
        home = subprocess.run([python, "-c", "import pyspark; print(pyspark.__path__[0])"], check=True, capture_output=True, text=True)
        self.home = pathlib.Path(home.stdout.strip())
        self.processes = {}
        (port,) = free_ports(1)
        self.start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", 0)
        self.wait("master", f"Starting Spark master at spark://127.0.0.1:{port}")
        address = f"spark://127.0.0.1:{port}"
        for name in ("worker-1", "worker-2"):
            self.start(name, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", 1, "--memory", "1g",
                "--webui-port", 0, "--work-dir", self.folder / name, address)
        for name in ("worker-1", "worker-2"):
            self.wait(name, "Successfully registered with master")
        with open(self.folder / "driver.log", "w") as log:
            self.driver = subprocess.Popen([python, "-B", "spark_driver.py", address], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, text=True, env=self.environment(), process_group=0)

    def environment(self):
        return {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(self.home)}

    def start(self, name, *words):
        with open(self.folder / f"{name}.log", "w") as log:
            words = [self.home / "bin/spark-class", *map(str, words)]
            self.processes[name] = subprocess.Popen(words, stdout=log, stderr=log, env=self.environment(), process_group=0)

    def wait(self, name, text, seconds=180):
        end = time.monotonic() + seconds
        while not re.search(re.escape(text), (self.folder / f"{name}.log").read_text()):
            assert self.processes[name].poll() is None, (self.folder / f"{name}.log").read_text()[-2000:]
            assert time.monotonic() < end, f"{name}: {text}"
            time.sleep(0.2)

    def send(self, question):
        self.driver.stdin.write(json.dumps(question) + "\n")
        self.driver.stdin.flush()

    def receive(self):
        for line in self.driver.stdout:
            if line.startswith("ANSWER "):
                answer = json.loads(line.removeprefix("ANSWER "))
                assert "error" not in answer, answer["error"]
                return answer["rows"]
        raise AssertionError((self.folder / "driver.log").read_text()[-2000:])

    def ask(self, question):
        self.send(question)
        return self.receive()

    def wait_for_executors(self, count):
        end = time.monotonic() + 180
        while self.ask("executors") != count:
            assert time.monotonic() < end, f"there are not {count} executors"
            time.sleep(0.2)

    def kill(self, name):
        """A worker with its executor, which is in its group of processes."""
        os.killpg(self.processes[name].pid, signal.SIGKILL)
        self.processes[name].wait()

    def close(self):
        self.driver.stdin.close()
        self.driver.stdout.close()
        for process in (self.driver, *self.processes.values()):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
