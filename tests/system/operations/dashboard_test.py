#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests the dashboard and its accessibility in a headless Chromium.

The screenshots are kept in build/screenshots for a person to check.
"""

import itertools
import os
import pathlib
import threading
import unittest

from harness import ROOT, wait_until
from harness.browser import BrowserTest
from harness.waiting import let_time_pass, pace

SCREENSHOTS = pathlib.Path(os.environ.get("BLOOMERY_SCREENSHOTS", ROOT / "build" / "screenshots"))
# Seconds for which the test runs a load before it takes the screenshots.
LOAD_S = int(os.environ.get("BLOOMERY_SCREENSHOTS_LOAD_S", "0"))
KINDS = {"plain": [], "deletable": ["DELETABLE"], "windowed": ["WINDOW"]}
# Inputs of the planner page: error rate, capacity, kind, and the window in seconds (default 86400).
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


CLICKS = "clicks:" + "long/" * 30


class Load:
    """Simulates the clients' work while pictures are taken, so that the charts have lines and a
    filter fills up.
    """

    def __init__(self, server):
        self.server = server
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        with self.server.connect() as client:
            for turn in itertools.count():
                if self.ends.is_set():
                    return
                for i in range(10 + turn % 17):
                    client.call("BF.EXISTS", "grown", f"item:{turn * 7 + i}")
                client.call("BF.MADD", "visitors", *(f"visit:{turn}:{i}" for i in range(5)))
                client.call("GET", "no such key")
                if turn % 10 == 0:
                    client.call("BF.ADD", "sessions", f"session:{turn}")
                pace(0.05)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()


class DashboardTest(BrowserTest):
    def fill(self, server):
        """Makes filters of every kind. Some have grown, and one has a higher error rate than
        requested.
        """
        with server.connect() as client:
            client.call("BF.RESERVE", "small", "0.01", "1000")
            client.call("BF.RESERVE", "grown", "0.001", "100")
            client.call("BF.RESERVE", "fixed", "0.001", "5000", "NONSCALING")
            client.call("BF.RESERVE", "sessions", "0.01", "10000", "DELETABLE")
            client.call("BF.RESERVE", "visitors", "0.01", "800", "WINDOW", "800", "ITEMS")
            client.call("BF.RESERVE", CLICKS, "0.0001", "200000")
            # Filters of valkey-bloom keep their error rate only until they grow.
            client.call("CONFIG", "SET", "bf-layout", "valkey-bloom")
            client.call("BF.RESERVE", "imported", "0.01", "300")
            client.call("CONFIG", "SET", "bf-layout", "native")
            client.call("SET", "no filter", "1")
            for key, count in (
                ("small", 390), ("grown", 3000), ("fixed", 4900), (CLICKS, 90000),
                ("imported", 3900), ("sessions", 8400), ("visitors", 2000),
            ):  # fmt: skip
                client.call("BF.MADD", key, *(f"item:{i}" for i in range(count)))
            # BF.MADD does not count an item that is a false positive. So more items are added until
            # BF.CARD has the wanted value.
            for key, wanted in (("fixed", 5000), ("sessions", 8500), ("small", 400)):
                self.fill_up(client, key, wanted)
            client.call("BF.ADD", b"odd \xff<b>name</b>", "x")

    def fill_up(self, client, key, wanted):
        serial = 0
        while client.call("BF.CARD", key) < wanted:
            serial += 1
            client.call("BF.ADD", key, f"more:{serial}")

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

    def test_the_keyboard_suffices(self):
        server = self.start_http_server()
        self.fill(server)
        self.browse("keyboard", server)

    def test_windows_show_their_generations(self):
        server = self.start_http_server()
        self.fill(server)
        with server.connect() as client:
            client.call("BF.RESERVE", "recent", "0.01", "800", "WINDOW", "600")
        self.browse("windows", server)

    def test_items_are_looked_up_and_added(self):
        server = self.start_http_server()
        self.fill(server)
        self.browse("tryIt", server, mayWrite=True)

    def test_without_the_right_nothing_is_added(self):
        server = self.start_http_server()
        self.fill(server)
        with server.connect() as client:
            client.call("ACL", "SETUSER", "default", "-bf.insert")
        self.browse("tryIt", server, mayWrite=False)

    def test_long_names_and_many_items_fit(self):
        server = self.start_http_server()
        name = "long/" * 600
        items = [f"item:{i}:{'x' * 30}" for i in range(399)] + ["y" * 2000]
        with server.connect() as client:
            client.call("BF.RESERVE", name, "0.000001", "1000")
            client.call("BF.MADD", name, *items[::2])
        self.browse("long", server, name=name, items=items)

    def test_denied_paths_are_not_polled(self):
        server = self.start_http_server()
        with server.connect() as client:
            client.call("ACL", "SETUSER", "default", "-bf.scan")
            self.browse(
                "denied", server, denied="/api/filters", polled="/api/overview",
                shownIn="#filters-note",
                reason="NOPERM this user has no permissions to run the 'bf.scan' command",
            )  # fmt: skip
            client.call("ACL", "SETUSER", "default", "+bf.scan", "-info")
        self.browse(
            "denied", server, denied="/api/overview", polled="/api/filters", shownIn="#state",
            reason="The user has no permission to run the 'info' command",
        )  # fmt: skip

    def test_five_hundred_filters_fit(self):
        server = self.start_http_server()
        with server.connect() as client:
            for i in range(500):
                client.call("BF.RESERVE", f"filter:{i}:" + "x" * (i % 60), "0.01", 100 + i)
                client.call("BF.MADD", f"filter:{i}:" + "x" * (i % 60), *range(i % 90 + 1))
        self.browse("many", server)

    def test_charts_and_every_view_in_every_look(self):
        """Shows a leader with two replicas, one of which lags, to five browsers at once. One
        browser reloads the charts. Each of the others views all pages in one width and one color
        scheme, while axe checks them.
        """
        server = self.start_http_server(
            "--maxmemory", "1gb", "--appendonly", "yes", "--slowlog-log-slower-than", "1000",
            "--repl-timeout", "600",
        )  # fmt: skip
        self.fill(server)
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        looks = list(itertools.product((1280, 390), ("light", "dark")))
        replicas = self.start_replicas(server)
        with Load(server):
            let_time_pass(LOAD_S, "charts of the pictures show more than a moment")
            self.delay(server, replicas[1])
            self.browse_all([self.task("operations", server)] + [
                self.task("look", server, width=width, scheme=scheme,
                          folder=str(SCREENSHOTS.absolute()))
                for width, scheme in looks
            ])  # fmt: skip
        names = {path.name for path in SCREENSHOTS.iterdir()}
        for view in ("filters", "window", "grown", "operations", "planner"):
            for width, scheme in looks:
                self.assertIn(f"{view}-{width}-{scheme}.png", names)

    def start_replicas(self, leader):
        replicas = [
            self.start_server("--replicaof", f"127.0.0.1 {leader.port}") for _ in range(2)
        ]
        with leader.connect() as client:
            wait_until(
                lambda: client.call("INFO", "replication").count(b"state=online") == 2,
                what="both replicas are online",
            )
        return replicas

    def delay(self, leader, replica):
        """Suspends the replica, and writes two megabytes that it does not receive."""
        self.addCleanup(replica.resume)
        replica.suspend()
        with leader.connect() as client:
            client.call("SET", "no filter", "x" * (2 << 20))

    def test_a_password_is_asked_for(self):
        server = self.start_http_server("--requirepass", "secret")
        self.browse("password", server, password="secret")

    def test_server_end_is_shown(self):
        server = self.start_http_server()

        def replace():
            server.wait_for_exit()
            self.start_server("--http-port", server.http_port, port=server.port)

        self.browse_with({"gone": replace}, "end", server, pid=server.pid)

    def test_the_next_growth_goes_by_rate(self):
        server = self.start_http_server()
        self.fill(server)
        self.browse("growth", server)


if __name__ == "__main__":
    unittest.main()
