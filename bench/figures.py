# SPDX-License-Identifier: MIT
"""Figures: the results of a bench, as named numbers in a JSON file.

A name is a path, "writes/allkeys-lru/1000000/20/ratio", so that a pattern can choose several.
bench/goals.py compares them with the goals.
"""
import fnmatch
import json
import pathlib


class Figures:
    def __init__(self, values=None):
        self.values = dict(values or {})

    def add(self, name, value):
        self.values[name] = value

    def matching(self, pattern):
        """Returns (name, value) of each name that matches the pattern."""
        return [pair for pair in self.values.items() if fnmatch.fnmatchcase(pair[0], pattern)]

    def write(self, path):
        """Writes the figures to the file that --figures names. Does nothing without a file."""
        if path is not None:
            pathlib.Path(path).write_text(json.dumps(self.values, indent=1), encoding="ascii")

    @classmethod
    def read(cls, path):
        return cls(json.loads(pathlib.Path(path).read_text(encoding="ascii")))

    @staticmethod
    def add_option(parser):
        parser.add_argument("--figures", metavar="FILE", help="writes the figures there as JSON")
