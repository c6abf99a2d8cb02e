#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What scripts/count_tests.py makes of reports that ctest wrote."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "count_tests.py"


class CountTestsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)

    def count(self, *tests):
        """Runs ctest on (name, shell command or None for a program that is not there) and returns
        (numbers, failures, skipped ones)."""
        lines = []
        for name, command in tests:
            program = "/nowhere/tests" if command is None else f'sh" "-c" "{command}'
            lines.append(f'add_test({name} "{program}")')
            # As gtest_discover_tests() has it.
            lines.append(
                f"set_tests_properties({name} PROPERTIES SKIP_REGULAR_EXPRESSION "
                '"\\\\[  SKIPPED \\\\]")'
            )
        (self.top / "CTestTestfile.cmake").write_text("\n".join(lines), encoding="ascii")
        subprocess.run(
            ["ctest", "--output-junit", self.top / "report.xml"],
            cwd=self.top, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        done = subprocess.run(
            [sys.executable, SCRIPT, "asan", "report.xml", "failures", "skipped"],
            cwd=self.top, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            return done.stderr
        texts = [(self.top / name).read_text("utf-8") for name in ("failures", "skipped")]
        return done.stdout, *texts

    def script(self, lines, status):
        """A command that prints this and ends so."""
        path = self.top / "output"
        path.write_text("\n".join(lines) + "\n", encoding="ascii")
        return f"cat {path}; exit {status}"

    def test_passed_and_failed(self):
        counts, failures, skipped = self.count(("good", "true"), ("bad", "echo why; false"))
        self.assertEqual((counts, skipped), ("1 1\n", ""))
        self.assertIn("== asan: bad: fail\nwhy", failures)

    def test_what_was_not_run_has_failed(self):
        counts, failures, skipped = self.count(("good", "true"), ("missing", None))
        self.assertEqual((counts, skipped), ("1 1\n", ""))
        self.assertIn("== asan: missing: notrun", failures)

    def test_skipped_unit_test_has_not_passed(self):
        told = self.count(("good", "true"), ("unit", "echo '[  SKIPPED ] A.B (0 ms)'"))
        self.assertEqual(told, ("1 0\n", "", "asan: unit\n"))

    def test_skipped_system_tests_are_named(self):
        line = "SKIPPED __main__.A.test_b: no mounts here"
        some = f"echo; echo {line}; echo Ran 2 tests in 1.0s"
        told = self.count(("some", some))
        self.assertEqual(told, ("1 0\n", "", "asan: some __main__.A.test_b\n"))
        told = self.count(("all", some.replace("Ran 2 tests", "Ran 1 test")))
        self.assertEqual(told[0], "0 0\n")

    PART = [
        "Note: This is test shard 1 of 9.", "[ RUN      ] A.B", "why", "[  FAILED  ] A.B (3 ms)",
    ]  # fmt: skip

    def test_cases_of_one_program_are_counted(self):
        sums = [
            "[  PASSED  ] 5 tests.", "[  SKIPPED ] 1 test, listed below:", "[  SKIPPED ] A.S",
            "[  FAILED  ] 2 tests, listed below:", "[  FAILED  ] A.B",
            "[  FAILED  ] P/A.C/0, where GetParam() = 7",
        ]  # fmt: skip
        script = self.script([*self.PART, *sums], 1)
        counts, failures, skipped = self.count(("good", "true"), ("part", script))
        self.assertEqual((counts, skipped), ("6 2\n", "asan: A.S\n"))
        self.assertIn("== asan: A.B:\n[ RUN      ] A.B\nwhy\n== asan: P/A.C/0:\n", failures)

    def test_a_program_that_fails_after_its_cases_has_failed(self):
        script = self.script([self.PART[0], "[  PASSED  ] 5 tests.", "a leak"], 1)
        counts, failures, _ = self.count(("part", script))
        self.assertEqual(counts, "5 1\n")
        self.assertIn("a leak", failures)

    def test_a_program_that_crashes_has_failed(self):
        counts, failures, _ = self.count(("part", self.script(self.PART[:3], 139)))
        self.assertEqual(counts, "0 1\n")
        self.assertIn("why", failures)

    def test_a_report_without_tests_is_none(self):
        self.assertIn("no test ran", self.count())


if __name__ == "__main__":
    unittest.main()
