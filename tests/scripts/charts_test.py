#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests of the plots and reports of bench/: docs/plots equals its data, reports are complete."""

import argparse
import pathlib
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import curves  # noqa: E402
import report  # noqa: E402
import svg_chart  # noqa: E402


class CurvesTest(unittest.TestCase):
    def test_plots_equal_their_data(self):
        """`python3 bench/curves.py` draws them again."""
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
        # A right-sized native filter keeps what it promises, however far it grows.
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


class ReportTest(unittest.TestCase):
    def test_a_report_has_machine_versions_commands_and_ratios(self):
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
