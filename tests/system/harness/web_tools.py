# SPDX-License-Identifier: MIT
"""Programs that serve HTTP beside a server: exporters, browsers of keys, Prometheus."""

import contextlib
import re
import shutil
import subprocess
import urllib.error
import urllib.request

from harness.ports import free_port
from harness.server_case import ServerTest
from harness.waiting import DEADLINE_S, wait_until

# Pattern of an error in the log of prometheus-redis-exporter, which may send commands that this
# server rejects.
EXPORTER_ERROR = re.compile(r"level=error msg=\"(.*)\"")
# Error of prometheus-redis-exporter for a filter: the exporter knows only the types of Redis.
UNKNOWN_TYPE = "unknown type: MBbloom-- for key: f"


class ToolsTest(ServerTest):
    def start_tool(self, command, url):
        """Starts a program that serves HTTP. It is stopped when the test ends."""
        process = subprocess.Popen(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

        def stop():
            process.terminate()
            process.wait(DEADLINE_S)
            process.stdout.close()

        self.addCleanup(stop)

        def answers():
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                with urllib.request.urlopen(url, timeout=DEADLINE_S):
                    return True
            self.assertIsNone(process.poll(), "ended by itself")
            return False

        wait_until(answers, what=f"{command[0]} on {url}")
        return process

    def fill(self, server):
        with server.connect() as client:
            client.call("SET", "a", "1")
            client.call("SET", "tree:b", "two", "EX", 1000)
            client.call("BF.ADD", "f", "item")

    def metrics_of(self, server, *options):
        """Runs prometheus-redis-exporter. Returns its metrics as a dictionary, and its errors."""
        program = shutil.which("prometheus-redis-exporter")
        self.assertIsNotNone(program, "run scripts/install_deps.sh test")
        port = free_port()
        address = f"127.0.0.1:{port}"
        process = self.start_tool(
            [program, "-redis.addr", f"redis://127.0.0.1:{server.port}",
             "-web.listen-address", address, *options],
            f"http://{address}/",
        )  # fmt: skip
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=DEADLINE_S) as page:
            lines = page.read().decode().splitlines()
        process.terminate()
        errors = EXPORTER_ERROR.findall(process.stdout.read())
        metrics = {}
        for line in lines:
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                metrics[name] = value
        return metrics, errors
