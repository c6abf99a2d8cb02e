#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests scripts/check_links.py with small archives."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

import check_links  # noqa: E402

ALLOWED = {"low": set(), "high": {"low"}}


class CheckLinksTest(unittest.TestCase):

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def archive(self, name, code):
        source, compiled = self.folder / f"{name}.cpp", self.folder / f"{name}.o"
        source.write_text(code, encoding="utf-8")
        subprocess.run(["g++", "-c", source, "-o", compiled], check=True)
        subprocess.run(["ar", "rc", self.folder / f"libbloomery_{name}.a", compiled], check=True)

    def test_a_higher_library_may_use_a_lower_one(self):
        self.archive("low", "int base() { return 1; }")
        self.archive("high", "int base(); int top() { return base(); }")
        self.assertEqual(check_links.faults(self.folder, ALLOWED), [])

    def test_a_lower_library_may_not_use_a_higher_one(self):
        self.archive("low", "int top(); int base() { return top(); }")
        self.archive("high", "int top() { return 1; }")
        self.assertEqual(check_links.faults(self.folder, ALLOWED), ["low may not use high: top()"])

    def test_inline_functions_belong_to_every_library(self):
        inline = "inline int shared() { return 1; } "
        self.archive("low", inline + "int base() { return shared(); }")
        self.archive("high", inline + "int top() { return shared(); }")
        self.assertEqual(check_links.faults(self.folder, ALLOWED), [])


if __name__ == "__main__":
    unittest.main()
