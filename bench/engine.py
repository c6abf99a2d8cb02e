#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs engine_bench, and gives its figures to bench/goals.py.

The figure growth/LAYERS/RATE/memory is the memory of a filter of LAYERS full layers, divided by
the memory of such a filter in RedisBloom.

The figures engine/MEMORY/ITEMS/RATE/... compare our time with that of Boost.Bloom. The figures
.../add, .../found and .../absent are times per item of a batch. The figures .../found_singly and
.../absent_singly are times of single lookups. Each figure is our time, divided by the best time of
the Boost.Bloom configurations that need at most MEMORY times our memory. The engine figures need a
build with the headers of Boost.Bloom. scripts/bench.sh says how to add the headers.
"""
import argparse
import pathlib
import subprocess

from figures import Figures

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "build/release/bench/engine_bench"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="below 1: leaves out 100 M items")
    Figures.add_option(parser)
    options = parser.parse_args()
    words = [str(PROGRAM)]
    if options.scale < 1:
        words.append("--quick")
    if options.figures is not None:
        words += ["--figures", options.figures]
    subprocess.run(words, check=True)


if __name__ == "__main__":
    main()
