#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests of scripts/test_tiers.py with stand-ins for compilers, ctest and fuzzers."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import test_tiers  # noqa: E402

REPORT = '<testsuite><testcase name="core_tests.0" status="run" time="2"/></testsuite>'


class TestTiersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        self.programs = self.top / "bin"
        path = f"{self.programs}:{os.environ['PATH']}"
        for patch in (
            unittest.mock.patch.object(test_tiers, "ROOT", self.top),
            unittest.mock.patch.object(test_tiers, "LOGS", self.top / "build" / "logs"),
            unittest.mock.patch.dict(os.environ, PATH=path, BLOOMERY_SEED="1"),
        ):
            patch.start()
            self.addCleanup(patch.stop)

    def program(self, name, script):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
        path.chmod(0o755)

    def run_tier(self, action):
        """Calls action(run) with a new test_tiers.Run. Returns the tier's exit status and the
        printed text.
        """
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            run = test_tiers.Run()
            action(run)
            status = run.end()
        return status, output.getvalue()

    def test_last_line_counts_and_table_names_parts(self):
        self.program("bin/ctest", f"cat > build/logs/units.xml <<'END'\n{REPORT}\nEND")
        status, output = self.run_tier(lambda run: run.ctest("release", "units"))
        self.assertEqual(status, 0)
        self.assertEqual(output.splitlines()[-1], "1 passed, 0 failed")
        self.assertRegex(output, r"(?m)^ +\d+  units$")
        self.assertIn("    2.0  release: core_tests.0", output)

    def test_missing_report_fails(self):
        self.program("bin/ctest", "exit 8")
        status, output = self.run_tier(lambda run: run.ctest("release", "units"))
        self.assertEqual(status, 1)
        self.assertIn("no report of its tests", output)
        self.assertEqual(output.splitlines()[-1], "0 passed, 1 failed")

    def test_failed_command_is_printed_to_repeat(self):
        status, output = self.run_tier(lambda run: run.command("check", "sh", "-c", "exit 3"))
        self.assertEqual(status, 1)
        self.assertIn("== check: exit status 3", output)
        self.assertIn("to repeat it: sh -c exit 3", output)

    def test_failed_build_shows_end_of_its_output(self):
        self.program("bin/cmake", "echo why it fails; exit 1")
        status, output = self.run_tier(lambda run: run.build("debug"))
        self.assertEqual(status, 1)
        self.assertIn("why it fails", output)

    def test_platforms_pass_fail_or_are_skipped(self):
        self.program("bin/cmake", "exit 0")
        self.program("bin/cpack", "exit 0")
        self.program("scripts/try_platform.sh", """case $1 in
          debian13) echo "$1: skipped: there is no debootstrap" ;;
          arm64) echo "the server is not ready:"; exit 1 ;;
          *) echo "$1: passed" ;;
        esac""")
        status, output = self.run_tier(test_tiers.try_platforms)
        self.assertEqual(status, 1)
        self.assertEqual(output.splitlines()[-1], "3 passed, 1 failed")
        self.assertIn("1 skipped: debian13: skipped: there is no debootstrap", output)
        self.assertIn("to repeat it: scripts/try_platform.sh arm64", output)

    def test_platform_without_a_verdict_fails(self):
        self.program("bin/cmake", "exit 0")
        self.program("bin/cpack", "exit 0")
        self.program("scripts/try_platform.sh", "exit 0")
        self.assertEqual(self.run_tier(test_tiers.try_platforms)[0], 1)

    def test_fuzzers_pass_and_fail_by_their_status(self):
        self.program("build/asan/tests/fuzz/good_fuzzer", "exit 0")
        self.program("build/asan/tests/fuzz/bad_fuzzer", "echo crash; exit 77")
        status, output = self.run_tier(lambda run: test_tiers.run_fuzzers(run, 1))
        self.assertEqual(status, 1)
        self.assertIn("== fuzz: bad_fuzzer: exit status 77\ncrash", output)
        self.assertEqual(output.splitlines()[-1], "1 passed, 1 failed")

    def test_missing_fuzzers_fail(self):
        status, output = self.run_tier(lambda run: test_tiers.run_fuzzers(run, 1))
        self.assertEqual(status, 1)
        self.assertIn("none was built", output)

    def test_stress_prints_failures_of_each_test(self):
        bad = REPORT.replace('status="run"', 'status="fail"')
        self.program("bin/cmake", "exit 0")
        # In this stand-in for ctest, tests with the label `calm` fail and all others pass.
        self.program(
            "bin/ctest",
            f"""case "$*" in *--label-exclude*) report='{REPORT}' ;; *) report='{bad}' ;; esac
            for path; do case $path in *.xml) echo "$report" > "$path" ;; esac; done""",
        )
        self.program("scripts/install_node_packages.sh", "")
        options = unittest.mock.Mock(arguments=["2"])
        loops = unittest.mock.patch.object(test_tiers, "BUSY_LOOPS", 1)
        with loops, unittest.mock.patch.dict(os.environ):
            status, output = self.run_tier(lambda run: test_tiers.run_stress(run, options))
        self.assertEqual(status, 1)
        self.assertIn("failed 2 of 2 rounds: release: core_tests.0", output)
        self.assertIn("BLOOMERY_SEED=1002", output)

    def test_missing_node_packages_fail_the_tier(self):
        self.program("bin/cmake", "")
        self.program("scripts/install_node_packages.sh", "exit 7")
        options = unittest.mock.Mock(arguments=["1"])
        status, output = self.run_tier(lambda run: test_tiers.run_stress(run, options))
        self.assertEqual(status, 1)
        self.assertIn("Node packages: exit status 7", output)
        self.assertEqual(output.splitlines()[-1], "0 passed, 1 failed")

    def test_newer_sources_make_a_library_changed(self):
        for library in test_tiers.LIBRARIES:
            self.program(f"build/release/tests/{library}_tests", "")
            (self.top / library).mkdir()
            (self.top / library / "unit.cpp").touch()
            os.utime(self.top / library / "unit.cpp", (1, 1))
        changed = test_tiers.changed_libraries("release", ["tests/server/x_test.cpp", "README.md"])
        self.assertEqual(changed, ["server"])
        os.utime(self.top / "core" / "unit.cpp")
        future = (self.top / "build/release/tests/core_tests").stat().st_mtime + 10
        os.utime(self.top / "core" / "unit.cpp", (future, future))
        self.assertEqual(test_tiers.changed_libraries("release", []), ["core"])

    def test_rejects_wrong_arguments(self):
        for arguments, pattern in (
            (["quick", "kernel"], "not a library: kernel"),
            (["unit", "core"], "takes no arguments: core"),
            (["stress", "0"], "one number of rounds"),
            (["nightly"], "invalid choice"),
        ):
            done = subprocess.run(
                [sys.executable, SCRIPTS / "test_tiers.py", *arguments],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            )  # fmt: skip
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(pattern, done.stdout)


if __name__ == "__main__":
    unittest.main()
