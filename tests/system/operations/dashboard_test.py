#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The dashboard in a headless Chromium, and its accessibility.

The screenshots are kept in build/screenshots for a person to check.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import unittest

from harness import ROOT, ServerTest, free_port
from harness.node import MODULES, SCRIPTS, node
from harness.waiting import wait_until

BROWSER_MODULES = MODULES / "node_modules_browser"
SCREENSHOTS = pathlib.Path(os.environ.get("BLOOMERY_SCREENSHOTS", ROOT / "build" / "screenshots"))
KINDS = {"plain": [], "deletable": ["DELETABLE"], "windowed": ["WINDOW"]}
# Error rate, capacity and kind; the number of a windowed filter is its window in seconds.
PLANS = [
    ("0.01", "1000000", "plain"), ("0.001", "100000", "plain"), ("0.25", "10", "plain"),
    ("1e-6", "5000000", "plain"), ("0.05", "123456789", "plain"), ("0.1", "1", "plain"),
    ("0.0001", "10000000000", "plain"), ("0.9", "1000", "plain"),
    ("0.01", "1000000", "deletable"), ("0.001", "50000", "deletable"),
    ("0.1", "777", "deletable"), ("0.0001", "20000000", "deletable"),
    ("0.00001", "3000", "deletable"), ("0.02", "1000000000", "deletable"),
    ("0.01", "1000000", "windowed"), ("0.001", "86400", "windowed", "3600"),
    ("0.1", "100", "windowed", "60"), ("0.0001", "40000000", "windowed", "604800"),
    ("0.03", "5", "windowed", "1"), ("0.005", "2500000", "windowed", "31536000"),
]  # fmt: skip
REFUSED = [("0.1%", "1000", "plain"), ("2", "1000", "plain"), ("0.01", "0", "deletable"),
           ("0.01", "x", "plain"), ("0.01", "1000", "windowed", "0")]  # fmt: skip


def text_of(value):
    return value.decode() if isinstance(value, bytes) else value


class DashboardTest(ServerTest):
    def setUp(self):
        self.chromium = shutil.which("chromium")
        if self.chromium is None:
            self.skipTest("there is no chromium: run scripts/install_deps.sh test")
        self.assertTrue(
            (BROWSER_MODULES / ".installed").exists(), "run scripts/install_node_packages.sh"
        )

    def start_http_server(self, *options):
        self.http_port = free_port()
        return self.start_server("--http-port", self.http_port, *options)

    def fill(self, server):
        """Filters of every kind, some of which have grown."""
        with server.connect() as client:
            client.call("BF.RESERVE", "small", "0.01", "1000")
            client.call("BF.RESERVE", "grown", "0.001", "100")
            client.call("BF.RESERVE", "fixed", "0.001", "5000", "NONSCALING")
            client.call("BF.RESERVE", "sessions", "0.01", "10000", "DELETABLE")
            client.call("BF.RESERVE", "visitors", "0.01", "800", "WINDOW", "800", "ITEMS")
            client.call("BF.RESERVE", "clicks:" + "long/" * 30, "0.0001", "200000")
            client.call("SET", "no filter", "1")
            for key, count in (("small", 390), ("grown", 3000), ("fixed", 4900),
                               ("sessions", 8400), ("visitors", 2000)):  # fmt: skip
                client.call("BF.MADD", key, *(f"item:{i}" for i in range(count)))
            # Counted items may be a few less than those added: an error is no new item.
            for key, wanted in (("fixed", 5000), ("sessions", 8500), ("small", 400)):
                self.fill_up(client, key, wanted)
            client.call("BF.ADD", b"odd \xff<b>name</b>", "x")

    def fill_up(self, client, key, wanted):
        serial = 0
        while client.call("BF.CARD", key) < wanted:
            serial += 1
            client.call("BF.ADD", key, f"more:{serial}")

    def browse(self, check, server, **more):
        """Runs a check of node/dashboard.cjs in a browser of its own."""
        with tempfile.TemporaryDirectory(
            prefix="bloomery-browser-", ignore_cleanup_errors=True  # the browser's children go last
        ) as profile:
            task = {
                "check": check, "origin": f"http://127.0.0.1:{self.http_port}",
                "port": server.port, "chromium": self.chromium, "profile": profile,
                "modules": str(BROWSER_MODULES / "node_modules"), **more,
            }  # fmt: skip
            command = [str(node()), str(SCRIPTS / "dashboard.cjs"), json.dumps(task)]
            done = subprocess.run(
                command, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                check=False,
            )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_shows_what_is_there(self):
        server = self.start_http_server("--maxmemory", "1gb", "--appendonly", "yes",
                                        "--slowlog-log-slower-than", "10")  # fmt: skip
        self.fill(server)
        self.browse("contents", server)

    def test_a_new_filter_is_shown_within_seconds(self):
        server = self.start_http_server()
        self.fill(server)
        self.browse("fresh", server)

    def test_plans_as_bf_plan(self):
        server = self.start_http_server()
        plans = []
        with server.connect() as client:
            client.call("HELLO", "3")
            for error_rate, capacity, kind, *window in PLANS:
                words = [*KINDS[kind], *(window or ["86400"] if kind == "windowed" else [])]
                reply = client.call("BF.PLAN", error_rate, capacity, *words)
                expected = {text_of(name): text_of(value) for name, value in reply.items()}
                plans.append({
                    "error_rate": error_rate, "capacity": capacity, "kind": kind,
                    "window": window[0] if window else "86400",
                    "expected": {
                        name: expected[name] for name in (
                            "bits per item", "bytes", "hash count", "cache lines per lookup",
                            "layout", "error rate of the first layer",
                        )
                    },
                })  # fmt: skip
        refused = [
            {"error_rate": rate, "capacity": capacity, "kind": kind,
             "window": window[0] if window else "86400"}
            for rate, capacity, kind, *window in REFUSED
        ]  # fmt: skip
        self.browse("planner", server, plans=plans, refused=refused)

    def test_axe_finds_no_serious_violation(self):
        server = self.start_http_server("--maxmemory", "1gb", "--appendonly", "yes")
        self.fill(server)
        self.browse("axe", server)

    def test_the_keyboard_suffices(self):
        server = self.start_http_server()
        self.fill(server)
        self.browse("keyboard", server)

    def test_windows_show_their_generations(self):
        server = self.start_http_server()
        self.fill(server)
        with server.connect() as client:
            client.call("BF.RESERVE", "recent", "0.01", "800", "WINDOW", "3600")
        self.browse("windows", server)

    def test_items_are_looked_up_and_added(self):
        server = self.start_http_server()
        self.fill(server)
        self.browse("tryIt", server, mayWrite=True)

    def test_without_the_right_nothing_is_added(self):
        server = self.start_http_server()
        self.fill(server)
        with server.connect() as client:
            client.call("ACL", "SETUSER", "default", "-bf.add")
        self.browse("tryIt", server, mayWrite=False)

    def test_charts_survive_a_reload(self):
        server = self.start_http_server("--maxmemory", "1gb", "--appendonly", "yes",
                                        "--slowlog-log-slower-than", "10")  # fmt: skip
        self.fill(server)
        self.browse("operations", server)

    def test_five_hundred_filters_fit(self):
        server = self.start_http_server()
        with server.connect() as client:
            for i in range(500):
                client.call("BF.RESERVE", f"filter:{i}:" + "x" * (i % 60), "0.01", 100 + i)
                client.call("BF.MADD", f"filter:{i}:" + "x" * (i % 60), *range(i % 90 + 1))
        self.browse("many", server)

    def test_screenshots_fit_their_window(self):
        server = self.start_http_server("--maxmemory", "1gb", "--appendonly", "yes",
                                        "--slowlog-log-slower-than", "1000")  # fmt: skip
        self.fill(server)
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.browse("screenshots", server, folder=str(SCREENSHOTS.absolute()))
        names = {path.name for path in SCREENSHOTS.iterdir()}
        for view in ("filters", "window", "grown", "operations", "planner"):
            for scheme in ("light", "dark"):
                for width in (1280, 390):
                    self.assertIn(f"{view}-{width}-{scheme}.png", names)

    def test_a_password_is_asked_for(self):
        server = self.start_http_server("--requirepass", "secret")
        self.browse("password", server, password="secret")

    def replace(self, server, sign):
        """Starts another server on the same ports, when the page has seen the first one end."""
        wait_until(sign.exists, what="the page sees that the server is gone")
        server.wait_for_exit()
        self.start_server("--http-port", self.http_port, port=server.port)

    def test_server_end_is_shown(self):
        server = self.start_http_server()
        with tempfile.TemporaryDirectory() as folder:
            sign = pathlib.Path(folder) / "seen"
            successor = threading.Thread(target=self.replace, args=(server, sign))
            successor.start()
            try:
                self.browse("end", server, pid=server.pid, sign=str(sign))
            finally:
                sign.touch()
                successor.join()


if __name__ == "__main__":
    unittest.main()
