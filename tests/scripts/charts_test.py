#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that docs/plots shows the data of curves.csv, and that the reports of bench/ are complete.
"""

import argparse
import pathlib
import re
import socket
import sys
import tempfile
import threading
import unittest
import xml.etree.ElementTree
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import curves  # noqa: E402
import fixed_rate  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import svg_chart  # noqa: E402


class CurvesTest(unittest.TestCase):
    def test_plots_equal_their_data(self):
        """If this test fails, run `python3 bench/curves.py` to draw the plots again."""
        for name, svg in curves.draw(curves.read_points(curves.PLOTS / "curves.csv")).items():
            drawn = (curves.PLOTS / name).read_text(encoding="utf-8")
            self.assertTrue(drawn == svg, f"{name} is not drawn from curves.csv")
            xml.etree.ElementTree.fromstring(svg)
            page = (ROOT / "docs/bloom_math.md").read_text(encoding="utf-8")
            self.assertTrue(f"](plots/{name})" in page, f"bloom_math.md does not show {name}")

    def test_the_data_are_complete(self):
        points = curves.read_points(curves.PLOTS / "curves.csv")
        self.assertEqual(set(points), set(curves.FIGURES))
        for figure in ("error", "lookup", "memory"):
            for layout in ("native", "redisbloom", "valkey-bloom", "fingerprints", "regions"):
                self.assertGreater(len(points[figure][layout]), 5, f"{figure} {layout}")
        # A native filter keeps the requested error rate of 1 %, even with 16 times the items for
        # which it was reserved.
        self.assertLess(max(y for _, y in points["error"]["native"]), 1.05)
        self.assertEqual({y for _, y in points["residue"]["fingerprints"]}, {0})


class ChartTest(unittest.TestCase):
    def test_lines(self):
        svg = svg_chart.line_chart("A < B", "x", "y", {"one & two": [(1, 2), (100, 4)]}, log_x=True)
        root = xml.etree.ElementTree.fromstring(svg)
        texts = [node.text for node in root.iter() if node.tag.endswith("text")]
        self.assertIn("A < B", texts)
        self.assertIn("one & two", texts)
        for tick in ("1", "10", "100", "0", "4"):
            self.assertIn(tick, texts)

    def test_values_map_between_the_ends(self):
        axis = svg_chart.Axis([0, 7], 100, 200, log=False)
        self.assertEqual((axis.place(0), axis.ticks[0]), (100, 0))
        self.assertTrue(100 < axis.place(7) <= 200)
        axis = svg_chart.Axis([1e-6, 0.1], 0, 60, log=True)
        self.assertAlmostEqual(axis.place(1e-6), 0)
        self.assertAlmostEqual(axis.place(0.01), 48)

    def test_bars(self):
        svg = svg_chart.bar_chart("T", "x", [("a", 0.5), ("b", 3)])
        self.assertEqual(len(re.findall("fill='#0072B2'", svg)), 2)
        xml.etree.ElementTree.fromstring(svg)


class FixedRateTest(unittest.TestCase):
    def test_quantiles(self):
        values = list(range(1, 1001))
        self.assertEqual(
            [fixed_rate.quantile(values, share) for share in (0.5, 0.99, 0.999, 1)],
            [500, 990, 999, 1000],
        )
        self.assertEqual(fixed_rate.quantile([7], 0.5), 7)

    def serve(self, listener, stall_s):
        """Accepts a client and answers each of its lines. Stalls for `stall_s` at the hundredth
        line."""
        link, _ = listener.accept()
        count = 0
        with link, link.makefile("rb") as stream:
            for _ in stream:
                count += 1
                if count == 100:
                    self.stalled.wait(stall_s)
                link.sendall(b"+OK\r\n")

    def test_stall_delays_every_request_that_was_due(self):
        self.stalled = threading.Event()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=self.serve, args=(listener, 0.5), daemon=True).start()
            load = fixed_rate.FixedRate(
                listener.getsockname()[1], lambda number: b"x\n", connections=1
            )
            begun = []
            with mock.patch.object(fixed_rate, "WARM_UP_S", 0.05):
                delays = load.run(200, 1, lambda: begun.append(1))
            load.close()
        self.assertEqual(begun, [1])
        self.assertEqual(len(delays), 200)
        # A hundred requests were due while the server stalled. A client that waits for each reply
        # before the next request would have measured only one slow request.
        self.assertGreater(sum(delay > 0.2 for delay in delays), 40)


class PeersTest(unittest.TestCase):
    def test_peer_is_a_name_and_a_command(self):
        self.assertEqual(
            peers.parse_peer("redis 8=/opt/redis-server --loadmodule 'a b.so'"),
            ("redis 8", ["/opt/redis-server", "--loadmodule", "a b.so"]),
        )
        for wrong in ("redis", "=redis-server", "redis="):
            with self.assertRaises(ValueError):
                peers.parse_peer(wrong)

    def test_one_table_has_all_servers(self):
        costs = {"redis": 4, "valkey": 3}
        sections = [
            (name, "", name, [("GET", 16, (1, 2), (1, ns))], "x.svg") for name, ns in costs.items()
        ]
        sections[0][3].append(("SET", 1, (1, 6), (1, 5)))
        text = report.side_by_side([*sections, ("absent", "", "absent", None, "y.svg")])
        self.assertIn("|  | pipeline | ours over redis | ours over valkey |\n", text)
        self.assertIn("| GET | 16 | 0.50 | 0.67 |\n", text)
        self.assertIn("| SET | 1 | 1.20 |  |\n", text)

    def test_report_has_a_table_of_each_peer(self):
        rows = [["calm", "1,000", *["0.10"] * 6]]
        with tempfile.TemporaryDirectory() as folder:
            report.write_report(pathlib.Path(folder), [], [], [("valkey", rows)])
            text = (pathlib.Path(folder) / "report.md").read_text(encoding="utf-8")
        self.assertIn("## Latency at fixed rates, beside valkey", text)
        self.assertIn("| ours, p99.9 ms | valkey, p50 ms |", text)
        self.assertIn("| calm | 1,000 | 0.10 |", text)


class ReportTest(unittest.TestCase):
    def test_report_has_machine_versions_and_ratios(self):
        rows = [("PING", 1, (1000.0, 500.0), (900.0, 1000.0))]
        options = argparse.Namespace(scale=1.0, pipelines=[1, 16])
        command = report.command_line(["PING"], options)
        facts = report.machine_facts() + report.versions()
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            report.write_report(folder, facts, [
                ("Commands", command, "redis-server", rows, "commands.svg"),
                ("Filters of RedisBloom", "", "RedisBloom", None, "none.svg"),
            ])  # fmt: skip
            text = (folder / "report.md").read_text(encoding="utf-8")
            xml.etree.ElementTree.parse(folder / "commands.svg")
            self.assertFalse((folder / "none.svg").exists())
        for words in ("| processor |", "| redis-server |", "| commit |", "**2.00**",
                      "redis-benchmark -c 50 -P N -n 100000 or 1000000",
                      "![Commands](commands.svg)", "Not measured: no module given"):  # fmt: skip
            self.assertIn(words, text)


if __name__ == "__main__":
    unittest.main()
