#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests bench/goals.py: the commands of all goals exist, figures decide whether a goal is met, and
a goal without figures is missed."""

import argparse
import dataclasses
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import goals  # noqa: E402
import limits_bench  # noqa: E402
from figures import Figures  # noqa: E402
from goals import Goal  # noqa: E402

AT_LEAST = Goal("rates", ("rates_bench.py",), "rate/*", at_least=1.0)
AT_MOST = Goal("refused", ("rates_bench.py",), "refused", at_most=0)
NEEDS_BUILD = Goal("cost", ("cost_bench.py", "--before"), "cost/*", at_most=1.03)
OPTIONS = argparse.Namespace(before=None, scale=1.0)


def evaluate(*table, values=None, options=OPTIONS):
    """Evaluates the rows of a table of goals. Returns their figures and verdicts, the number of
    missed goals, and the commands that ran.
    """
    ran = []

    def run(command, _options):
        ran.append(command)
        return Figures(values or {})

    rows, missed = goals.evaluate(table, options, run)
    return [(cells[1], cells[4]) for cells in rows], missed, ran


class GoalsTest(unittest.TestCase):
    def test_each_command_exists_and_gives_figures(self):
        for command in {goal.command for goal in goals.GOALS}:
            options = argparse.Namespace(before="/an/earlier/server", scale=0.5)
            line = goals.command_line(command, options)
            done = subprocess.run([sys.executable, line[0], "--help"], capture_output=True,
                                  text=True, check=True)
            for word in [*line[1:], "--figures"]:
                if word.startswith("--"):
                    self.assertIn(word, done.stdout, command)

    def test_each_pattern_names_figures_of_its_bench(self):
        for goal in goals.GOALS:
            text = (ROOT / "bench" / goal.command[0]).read_text(encoding="utf-8")
            last = goal.pattern.rsplit("/", 1)[-1]
            self.assertIn(f"/{last}", text, goal.name)
            bounds = math.isfinite(goal.at_least), math.isfinite(goal.at_most)
            self.assertEqual(sum(bounds), 1, goal.name)

    def test_the_page_shows_each_goal(self):
        page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
        for goal in goals.GOALS:
            self.assertRegex(page, rf"(?m)^\| {re.escape(goal.name)} \| .* \| "
                                   rf"{re.escape(goal.wanted())} \|", goal.name)

    def test_the_worst_figure_decides(self):
        values = {"rate/a": 1.2, "rate/b": 0.98, "refused": 0}
        shown, missed, ran = evaluate(AT_LEAST, AT_MOST, values=values)
        self.assertEqual(shown, [("0.98 (rate/b)", "MISSED"), ("0.00", "met")])
        self.assertEqual((missed, len(ran)), (1, 1), "one run serves both goals")
        values["rate/b"] = 1.0
        self.assertEqual(evaluate(AT_LEAST, values=values)[1], 0)

    def test_a_mean_decides_where_the_goal_says_so(self):
        mean = dataclasses.replace(AT_LEAST, is_mean=True)
        shown, missed, _ = evaluate(mean, values={"rate/a": 1.25, "rate/b": 0.9})
        self.assertEqual((shown, missed), ([("1.06 (worst 0.90: rate/b)", "met")], 0))
        shown, missed, _ = evaluate(mean, values={"rate/a": 1.25, "rate/b": 0.7})
        self.assertEqual((shown, missed), ([("0.94 (worst 0.70: rate/b)", "MISSED")], 1))

    def test_a_goal_without_figures_is_missed(self):
        shown, missed, _ = evaluate(AT_LEAST)
        self.assertEqual((shown, missed), ([("none", "MISSED")], 1))

    def test_a_goal_that_lacks_an_option_is_skipped(self):
        shown, missed, ran = evaluate(NEEDS_BUILD)
        self.assertEqual((missed, ran), (0, []))
        self.assertIn("skipped: no earlier build given", shown[0][1])
        options = argparse.Namespace(before="old", scale=1.0)
        shown, missed, _ = evaluate(NEEDS_BUILD, values={"cost/x": 1.04}, options=options)
        self.assertEqual((shown, missed), ([("1.04", "MISSED")], 1))

    def test_a_bench_that_fails_gives_no_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            bench = pathlib.Path(folder) / "broken.py"
            bench.write_text("raise SystemExit(3)\n", encoding="ascii")
            self.assertEqual(goals.measure((str(bench),), OPTIONS).values, {})

    def test_figures_survive_their_file(self):
        figures = Figures({"a/b": 1.5})
        with tempfile.TemporaryDirectory() as folder:
            figures.write(pathlib.Path(folder) / "f.json")
            self.assertEqual(Figures.read(pathlib.Path(folder) / "f.json").values, figures.values)
        figures.write(None)


class LimitsRatioTest(unittest.TestCase):
    def test_ratio_above_one_means_this_server_is_better(self):
        ours = [limits_bench.Round(1100, 200_000)] * 3
        theirs = [limits_bench.Round(1000, 250_000)] * 3
        of_rates, of_cpu = limits_bench.ratios(ours, theirs)
        self.assertAlmostEqual(of_rates, 1.1)
        self.assertAlmostEqual(of_cpu, 1.25)

    def test_refused_requests_give_no_rate(self):
        refused = [limits_bench.Round(0, 0)] * 3
        self.assertEqual(limits_bench.ratios(refused, [limits_bench.Round(1000, 1)] * 3)[0], 0)


if __name__ == "__main__":
    unittest.main()
