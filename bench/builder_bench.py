#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how many items of a text file the offline builder (--build-filter) adds per second and
core, by layout and error rate.
"""
import argparse
import os
import re
import subprocess
import tempfile

BINARY = os.environ.get("BLOOMERY_SERVER", "build/release/bloomery-server")
CASES = (("native", "0.01"), ("native", "0.0001"), ("redisbloom", "0.01"),
         ("valkey-bloom", "0.01"))


def write_items(path, count):
    with open(path, "w", encoding="ascii") as file:
        for start in range(0, count, 1_000_000):
            end = min(count, start + 1_000_000)
            file.write("\n".join(f"user:{number}" for number in range(start, end)) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000_000)
    options = parser.parse_args()
    print(f"\nThe offline builder, {options.items:,} lines")
    with tempfile.TemporaryDirectory(prefix="bloomery-bench-") as directory:
        items = os.path.join(directory, "items.txt")
        write_items(items, options.items)
        for layout, rate in CASES:
            with open(items, "rb") as file:
                output = subprocess.run(
                    [BINARY, "--build-filter", os.path.join(directory, "out.rdb"), "--error", rate,
                     "--layout", layout], stdin=file, check=True, capture_output=True, text=True,
                ).stdout  # fmt: skip
            seconds, each, cores, used = re.search(
                r"([\d.]+) s, ([\d.]+) million .* cores (\d+), processor time ([\d.]+) s", output
            ).groups()
            per_second_used = options.items / 1e6 / float(used)
            print(f"{layout:<13} at {rate:<7} {seconds:>6} s on {cores} cores: {each} million "
                  f"items a second and core; {per_second_used:.2f} million per second of "
                  "processor time", flush=True)


if __name__ == "__main__":
    main()
