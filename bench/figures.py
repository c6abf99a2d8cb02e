# SPDX-License-Identifier: MIT
"""Figures: the results of a bench, as named numbers in a JSON file.

The name of a figure is a path such as "writes/allkeys-lru/1000000/20/ratio". So a glob pattern can
choose several figures. The script bench/goals.py compares the figures with the goals.
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
        """Returns (name, value) of each figure whose name matches the glob pattern."""
        return [pair for pair in self.values.items() if fnmatch.fnmatchcase(pair[0], pattern)]

    def write(self, path):
        """Writes the figures as JSON to `path`, the value of --figures. Does nothing for None."""
        if path is not None:
            pathlib.Path(path).write_text(json.dumps(self.values, indent=1), encoding="ascii")

    @classmethod
    def read(cls, path):
        return cls(json.loads(pathlib.Path(path).read_text(encoding="ascii")))

    @staticmethod
    def add_option(parser):
        parser.add_argument("--figures", metavar="FILE", help="writes the figures there as JSON")
