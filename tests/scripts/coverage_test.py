#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checks how coverage.py merges the counters of gcov and compares two runs."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import coverage  # noqa: E402

ROOT = pathlib.Path("/tree")


def line(number, count, *branches):
    return {
        "line_number": number,
        "count": count,
        "branches": [{"count": taken, "throw": throw} for taken, throw in branches],
    }


def report(*files, folder="/tree/build/coverage"):
    return {
        "current_working_directory": folder,
        "files": [{"file": name, "lines": lines} for name, lines in files],
    }


def document(text, covered, missed, path="core/a.cpp"):
    lines = {"covered": covered, "missed": missed, "text": text}
    row = {"lines": len(covered) + len(missed), "covered": len(covered)}
    return {"folders": {"core": row}, "files": {path: lines}}


class MergeTest(unittest.TestCase):
    def merged(self, *reports):
        files = {}
        for each in reports:
            coverage.merge_report(each, files, ROOT)
        return files

    def test_adds_counts_of_several_objects(self):
        files = self.merged(
            report(("/tree/core/a.h", [line(1, 0), line(2, 3)])),
            report(("/tree/core/a.h", [line(1, 1), line(3, 0)])),
        )
        self.assertEqual(files["core/a.h"].covered(), [1, 2])
        self.assertEqual(files["core/a.h"].missed(), [3])

    def test_counts_product_sources_only(self):
        files = self.merged(report(
            ("/tree/core/a.cpp", [line(1, 1)]),
            ("../../server/b.cpp", [line(1, 1)]),
            ("/tree/tests/core/a_test.cpp", [line(1, 1)]),
            ("/tree/build/coverage/server/page.cpp", [line(1, 1)]),
            ("/usr/include/core/a.h", [line(1, 1)]),
        ))  # fmt: skip
        self.assertEqual(sorted(files), ["core/a.cpp", "server/b.cpp"])

    def test_counts_each_branch_without_exceptions(self):
        files = self.merged(
            report(("/tree/core/a.h", [line(1, 2, (2, False), (0, False), (0, True))])),
            report(("/tree/core/a.h", [line(1, 2, (0, False), (0, False), (1, True))])),
        )
        row = coverage.summarize(files)["core"]
        self.assertEqual((row["branches"], row["taken"]), (2, 1))

    def test_sums_folders_and_all(self):
        files = self.merged(report(
            ("/tree/core/a.cpp", [line(1, 1), line(2, 0)]), ("/tree/server/b.cpp", [line(1, 1)]),
        ))  # fmt: skip
        sums = coverage.summarize(files)
        self.assertEqual(list(sums), ["core", "server", "all"])
        self.assertEqual((sums["all"]["lines"], sums["all"]["covered"]), (3, 2))


class CompareTest(unittest.TestCase):
    def test_finds_lost_line_that_moved(self):
        old = document(["a();", "b();"], [1, 2], [])
        new = document(["new();", "a();", "b();"], [1, 2], [3])
        self.assertEqual(coverage.lost_lines(old, new), {"core/a.cpp": [3]})

    def test_ignores_deleted_and_rewritten_lines(self):
        old = document(["a();", "b();"], [1, 2], [])
        new = document(["a();", "c();"], [1], [2])
        self.assertEqual(coverage.lost_lines(old, new), {})

    def test_ignores_new_files(self):
        old = document(["a();"], [1], [], path="core/old.cpp")
        self.assertEqual(coverage.lost_lines(old, document(["a();"], [], [1])), {})

    def test_lower_coverage_fails(self):
        old = document(["a();", "b();"], [1, 2], [])
        new = document(["a();", "b();"], [1], [2])
        with mock.patch("builtins.print") as printed:
            self.assertFalse(coverage.compare(old, new))
            self.assertTrue(coverage.compare(old, old))
        said = [call.args[0] for call in printed.call_args_list]
        self.assertEqual(said, [
            "no longer covered: core/a.cpp: 2",
            "lower line coverage: core: 100.00% before, 50.00% now",
        ])  # fmt: skip

    def test_tolerates_a_rare_line(self):
        numbers = list(range(1, 3001))
        old = document([], numbers, [])
        new = document([], numbers[1:], [1])
        self.assertEqual(coverage.lower_folders(old, new), [])

    def test_formats_ranges(self):
        self.assertEqual(coverage.format_ranges([7, 1, 3, 2]), "1-3, 7")


class GcovTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        source = self.root / "core" / "a.cpp"
        source.parent.mkdir()
        source.write_text(
            "int pick(int n) {\n  if (n > 1)\n    return 7;\n  return 8;\n}\n"
            "int main(int argc, char**) { return pick(argc) == 8 ? 0 : 1; }\n"
        )
        subprocess.run(
            ["g++", "-O0", "--coverage", source, "-o", "a"], cwd=self.root, check=True
        )
        patched = mock.patch.object(coverage, "ROOT", self.root)
        patched.start()
        self.addCleanup(patched.stop)

    def test_reads_the_counters_of_a_program(self):
        subprocess.run([self.root / "a"], check=True)
        files = coverage.read_counters(self.root, 1)
        self.assertEqual(files["core/a.cpp"].missed(), [3])
        self.assertEqual(files["core/a.cpp"].covered(), [1, 2, 4, 6])

    def test_refuses_a_run_without_counters(self):
        with self.assertRaisesRegex(SystemExit, "no test has run"):
            coverage.read_counters(self.root, 1)


if __name__ == "__main__":
    unittest.main()
