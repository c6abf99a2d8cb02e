#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the performance goals of the server and prints a table: goal, figure, verdict.

`scripts/bench.sh goals` calls this script. A goal is a row of GOALS: the bench that measures it, a
glob pattern for the names of its figures, and a bound. The worst of those figures must meet the
bound. Where single figures are too noisy, their geometric mean must meet the bound. A bench runs
once for all of its goals. The exit status is 1 if a goal was missed.
"""
import argparse
import dataclasses
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from figures import Figures

FOLDER = pathlib.Path(__file__).resolve().parent
MB = 1 << 20
LIMITS = ("limits_bench.py",)
EXPIRY = ("expiry_bench.py",)
ENGINE = ("engine.py",)
BATCHES = ("server_bench.py", "--only", "batches")
GROWTH = ("server_bench.py", "--only", "growth")
SIZES = (100_000, 10_000_000, 100_000_000)
# Reasons to skip the goals of a peer that was not measured.
BOOST = "the build has no headers of Boost.Bloom: see scripts/bench.sh"
REDISBLOOM = "no module given: REDISBLOOM_MODULE"
HUGE_PAGES = ("huge_pages_bench.py",)
# Command that needs the option --before, which names the server program of an earlier build.
BUILDS = ("builds_bench.py", "--before")
# Maps an option to the verdict of goals that are skipped because the option was not given.
NEEDED = {"--before": "no earlier build given: --before SERVER"}


@dataclasses.dataclass(frozen=True)
class Goal:
    name: str
    command: tuple
    pattern: str  # glob pattern that matches the names of the goal's figures
    at_least: float = -math.inf
    at_most: float = math.inf
    form: str = "{:.2f}"
    peer: str = ""  # why the goal has no figures if its peer was not measured
    is_mean: bool = False  # true if the bound applies to the geometric mean of the figures

    def worst(self, figures):
        """Returns (name, value) of the worst figure: the largest if the goal has an upper bound,
        else the smallest. Returns None if no figure matches the pattern.
        """
        found = figures.matching(self.pattern)
        if not found:
            return None
        return (max if math.isfinite(self.at_most) else min)(found, key=lambda pair: pair[1])

    def deciding_value(self, figures):
        """Returns the value that must meet the bound; None if no figure matches the pattern."""
        values = [value for _, value in figures.matching(self.pattern)]
        if not values:
            return None
        return statistics.geometric_mean(values) if self.is_mean else self.worst(figures)[1]

    def is_met_by(self, value):
        return self.at_least <= value <= self.at_most

    def wanted(self):
        parts = []
        if math.isfinite(self.at_least):
            parts.append(f"≥ {self.form.format(self.at_least)}")
        if math.isfinite(self.at_most):
            parts.append(f"≤ {self.form.format(self.at_most)}")
        return ", ".join(parts)


GOALS = (
    *(Goal(f"writes of {title} at the limit, pipeline {pipeline}, over redis-server's", LIMITS,
           f"writes/*/{size}/{pipeline}/ratio", at_least=1.0, is_mean=True)
      for title, size in (("100 bytes", 100), ("5 kB", 5000), ("50 kB", 50_000),
                          ("1 MB", 1_000_000))
      for pipeline in (1, 20)),
    Goal("bytes above maxmemory, writes", LIMITS, "writes/*/peak_bytes", at_most=MB,
         form="{:,.0f}"),
    Goal("bytes above maxmemory, filters", LIMITS, "filters/*/peak_bytes", at_most=MB,
         form="{:,.0f}"),
    Goal("refused while keys may be evicted", LIMITS, "*/refused", at_most=0, form="{:.0f}"),
    Goal("SET PX 500 a second", EXPIRY, "load/rate", at_least=198_000, form="{:,.0f}"),
    Goal("of them refused under 128 MB", EXPIRY, "load/refused", at_most=0, form="{:.0f}"),
    Goal("keys over the live ones", EXPIRY, "load/keys_over_live", at_most=1.5),
    Goal("ms that an expired event is late, beside 5 M keys", EXPIRY, "events/late_ms", at_most=500,
         form="{:.0f}"),
    Goal("idle CPU with 5 M keys that expire in a week", EXPIRY, "idle/share", at_most=0.01,
         form="{:.2%}"),
    # Redis documents that active-expire-effort 1 uses 25 % of a processor, and 10 uses 43 %.
    Goal("CPU of active-expire-effort 1", EXPIRY, "effort/1/share", at_most=0.27,
         form="{:.1%}"),
    Goal("CPU of active-expire-effort 10", EXPIRY, "effort/10/share", at_least=0.35,
         form="{:.1%}"),
    *(Goal(f"memory of a filter of {layers} layers over RedisBloom's", ENGINE,
           f"growth/{layers}/*/memory", at_most=bound, form="{:.3f}")
      for layers, bound in ((1, 1.06), (2, 1.06), (3, 1.06), (4, 1.06), (5, 1.06), (6, 1.02),
                            (7, 1.02), (10, 1.0), (14, 1.0))),
    *(Goal(f"{work} of {size:,} items over Boost.Bloom's best, memory {memory}", ENGINE,
           f"engine/{memory}/{size // 128 * 128}/*/{work}", at_most=bound, peer=BOOST)
      for size in SIZES for memory, works in (("1.03", (("add", 1.2), ("found", 1.0),
                                                        ("absent", 1.0))),
                                              ("1.09", (("add", 1.6), ("found", 1.3),
                                                        ("absent", 1.3))))
      for work, bound in works),
    Goal("an item of MADD x100 over redis-server's SETBIT", BATCHES, "batches/MADD/setbit",
         at_most=0.13, form="{:.3f}"),
    Goal("an absent item of MEXISTS x100 over that SETBIT", BATCHES, "batches/MEXISTS/setbit",
         at_most=0.08, form="{:.3f}"),
    Goal("an item of MADD x100 over RedisBloom's", BATCHES, "batches/MADD/redisbloom",
         at_most=0.16, form="{:.3f}", peer=REDISBLOOM),
    Goal("an absent item of MEXISTS x100 over RedisBloom's", BATCHES, "batches/MEXISTS/redisbloom",
         at_most=0.11, form="{:.3f}", peer=REDISBLOOM),
    Goal("BF.ADD at pipeline 350 over RedisBloom's", BATCHES, "batches/ADD/redisbloom",
         at_most=0.24, peer=REDISBLOOM),
    Goal("absent items grown from 1,000 to 1 M over right-sized, batch", GROWTH,
         "growth/from-1000/batch", at_most=1.5),
    Goal("absent items grown from 1,000 to 1 M over right-sized, single", GROWTH,
         "growth/from-1000/single", at_most=1.5),
    *(Goal(f"server CPU per item of a 1 GB filter over a 12 MB filter, {command}", HUGE_PAGES,
           f"auto/{command}/1GB/ratio", at_most=1.6) for command in ("BF.MADD", "BF.MEXISTS")),
    Goal("s until a filled filter of 1 GB begins to move to huge pages", HUGE_PAGES,
         "collapse/begin_s", at_most=60, form="{:.1f}"),
    Goal("ms of the longest PING meanwhile", HUGE_PAGES, "collapse/longest_ping_ms", at_most=20,
         form="{:.1f}"),
    Goal("resident bytes of 2 billion items reserved, 2,000 added", HUGE_PAGES,
         "sparse/*/resident_bytes", at_most=64_000_000, form="{:,.0f}"),
    Goal("CPU per operation over the earlier build's", BUILDS, "builds/*/ratio", at_most=1.03),
)


def missing_option(command, options):
    """Returns the option that the command needs but was not given; None if nothing is missing."""
    last = command[-1]
    return last if last in NEEDED and getattr(options, last[2:]) is None else None


def command_line(command, options):
    """Returns the command line of the bench, without the option --figures."""
    words = [str(FOLDER / command[0]), *command[1:]]
    if command[-1] in NEEDED:
        words.append(getattr(options, command[-1][2:]))
    elif options.scale != 1.0:
        words += ["--scale", str(options.scale)]
    return words


def measure(command, options):
    """Runs the bench and returns its figures; no figures if it wrote none. The exit status of the
    bench is ignored, because the bench checks goals of its own.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "figures.json"
        words = [sys.executable, *command_line(command, options), "--figures", str(file)]
        status = subprocess.run(words, check=False).returncode
        if not file.exists():
            print(f"{command[0]} ended with {status} and has no figures", file=sys.stderr)
            return Figures()
        return Figures.read(file)


def row(goal, figures):
    """Returns the cells of a goal's row in the table, and whether the goal was missed."""
    worst = goal.worst(figures)
    if worst is None and goal.peer:
        return [goal.name, "none", goal.wanted(), command_text(goal), f"skipped: {goal.peer}"], \
            False
    if worst is None:
        return [goal.name, "none", goal.wanted(), command_text(goal), "MISSED"], True
    is_met = goal.is_met_by(goal.deciding_value(figures))
    figure = figure_cell(goal, figures)
    return [goal.name, figure, goal.wanted(), command_text(goal), "met" if is_met else "MISSED"], \
        not is_met


def figure_cell(goal, figures):
    name, value = goal.worst(figures)
    shown = goal.form.format(value)
    if goal.is_mean:
        return f"{goal.form.format(goal.deciding_value(figures))} (worst {shown}: {name})"
    return f"{shown} ({name})" if len(figures.matching(goal.pattern)) > 1 else shown


def command_text(goal):
    return f"`bench/{' '.join(goal.command)}`"


def evaluate(goals, options, run=measure):
    """Returns the rows of the table, and the number of goals that were missed."""
    rows, missed, measured = [], 0, {}
    for goal in goals:
        option = missing_option(goal.command, options)
        if option is not None:
            rows.append([goal.name, "none", goal.wanted(), command_text(goal),
                         f"skipped: {NEEDED[option]}"])
            continue
        if goal.command not in measured:
            measured[goal.command] = run(goal.command, options)
        cells, is_missed = row(goal, measured[goal.command])
        rows.append(cells)
        missed += is_missed
    return rows, missed


def print_table(rows):
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    for cells in (["goal", "figure", "wanted", "command", "verdict"], ["---"] * 5, *rows):
        print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", help="server of the build to compare CPU per operation with")
    parser.add_argument("--only", help="goals whose name or command has this text")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the work of a bench")
    options = parser.parse_args()
    goals = [goal for goal in GOALS
             if options.only is None or options.only in f"{goal.name} {goal.command[0]}"]
    rows, missed = evaluate(goals, options)
    print_table(rows)
    print(f"\n{missed} goals missed")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
