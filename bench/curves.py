#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws docs/plots/*.svg from docs/plots/curves.csv, the output of bench/curves_bench.cpp.

`scripts/bench.sh --only curves` measures the curves again and draws them; this script only draws.
"""

import csv
import pathlib

from svg_chart import line_chart

PLOTS = pathlib.Path(__file__).resolve().parents[1] / "docs/plots"
FIGURES = {
    "error": (
        "Errors of a filter reserved for 1, at 1 %", "items added, as a multiple of the capacity",
        "absent items found, %", {},
    ),
    "lookup": (
        "An absent item in a full filter, in batches of 128, at 1 %", "items", "ns per lookup",
        {"log_x": True},
    ),
    "residue": (
        "Items that cannot be deleted, at 1 %", "items added, % of the capacity",
        "of these cannot be taken out, %", {},
    ),
    "memory": (
        "Memory of a filter for a million items, that may grow", "error rate", "bits per item",
        {"log_x": True},
    ),
}  # fmt: skip


def read_points(path):
    """Returns {figure: {series: [(x, y), ...]}}, in the order of the CSV file."""
    figures = {}
    with open(path, encoding="ascii", newline="") as file:
        for row in csv.DictReader(file):
            line = figures.setdefault(row["figure"], {}).setdefault(row["series"], [])
            line.append((float(row["x"]), float(row["y"])))
    return figures


def draw(points):
    """Returns {file name: SVG text} of all figures."""
    return {
        f"{figure}.svg": line_chart(title, x_label, y_label, points[figure], **axes)
        for figure, (title, x_label, y_label, axes) in FIGURES.items()
    }


def main():
    for name, svg in draw(read_points(PLOTS / "curves.csv")).items():
        (PLOTS / name).write_text(svg, encoding="utf-8")
        print(PLOTS / name)


if __name__ == "__main__":
    main()
