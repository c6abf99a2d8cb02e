#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that scripts/test_report.py reads reports of ctest."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import test_report  # noqa: E402

PROGRAM = ["[==========] Running 9 tests from 2 test suites.", "[ RUN      ] A.B", "reason"]


class TestReportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)

    def read(self, *tests):
        """Runs ctest on pairs (test name, shell command). The command None stands for a missing
        program. Returns the report."""
        lines = []
        for name, command in tests:
            program = "/nowhere/tests" if command is None else f'sh" "-c" "{command}'
            lines.append(f'add_test({name} "{program}")')
        (self.top / "CTestTestfile.cmake").write_text("\n".join(lines), encoding="ascii")
        subprocess.run(
            ["ctest", "--output-junit", self.top / "report.xml"],
            cwd=self.top, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        return test_report.read("asan", self.top / "report.xml")

    def script(self, lines, status):
        """Returns a shell command that prints the lines and exits with the status."""
        path = self.top / "output"
        path.write_text("\n".join(lines) + "\n", encoding="ascii")
        return f"cat {path}; exit {status}"

    def test_counts_tests_and_keeps_output_of_failures(self):
        report = self.read(("good", "true"), ("bad", "echo why; false"))
        self.assertEqual((report.passed, report.failed, report.skipped), (1, 1, []))
        text = str(report.failures[0])
        self.assertIn("== asan: bad: fail\nwhy", text)
        self.assertIn("to repeat it: ctest --preset asan --tests-regex '^bad$'", text)

    def test_missing_program_fails(self):
        report = self.read(("good", "true"), ("missing", None))
        self.assertEqual((report.passed, report.failed), (1, 1))
        self.assertIn("== asan: missing: notrun", str(report.failures[0]))

    def test_skipped_system_tests_are_named(self):
        line = "SKIPPED __main__.A.test_b: no mounts here"
        some = f"echo; echo {line}; echo Ran 2 tests in 1.0s"
        report = self.read(("some", some))
        self.assertEqual(report.passed, 1)
        self.assertEqual(report.skipped, ["asan: some __main__.A.test_b"])
        report = self.read(("all", some.replace("Ran 2 tests", "Ran 1 test")))
        self.assertEqual((report.passed, report.failed), (0, 0))

    def test_counts_and_times_cases_of_a_program(self):
        lines = [
            *PROGRAM, "[  FAILED  ] A.B (3 ms)",
            "[ RUN      ] P/A.C/0", "text[       OK ] P/A.C/0 (2500 ms)",
            "[ RUN      ] P/A.C/1", "[  FAILED  ] P/A.C/1, where GetParam() = 7 (1 ms)",
            "[ RUN      ] A.S", "[  SKIPPED ] A.S (0 ms)",
            "[  PASSED  ] 1 test.", "[  FAILED  ] 2 tests, listed below:", "[  FAILED  ] A.B",
        ]  # fmt: skip
        report = self.read(("good", "true"), ("core_tests.1", self.script(lines, 1)))
        self.assertEqual((report.passed, report.failed, report.skipped), (2, 2, ["asan: A.S"]))
        self.assertIn((2.5, "asan: P/A.C/0"), report.times)
        text = str(report.failures[0])
        self.assertIn("== asan: A.B: failed\n[ RUN      ] A.B\nreason\n", text)
        self.assertIn("build/asan/tests/core_tests --gtest_filter='A.B'", text)

    def test_program_that_fails_after_its_cases_fails(self):
        lines = [*PROGRAM, "[       OK ] A.B (1 ms)", "[  PASSED  ] 1 test.", "a leak"]
        report = self.read(("part", self.script(lines, 1)))
        self.assertEqual((report.passed, report.failed), (1, 1))
        self.assertIn("a leak", str(report.failures[0]))

    def test_crash_names_its_case(self):
        report = self.read(("part", self.script(PROGRAM, 139)))
        self.assertEqual((report.passed, report.failed), (0, 1))
        self.assertIn("== asan: A.B: fail during this case", str(report.failures[0]))

    def test_rejects_report_without_tests(self):
        with self.assertRaisesRegex(ValueError, "no test ran"):
            self.read()


if __name__ == "__main__":
    unittest.main()
