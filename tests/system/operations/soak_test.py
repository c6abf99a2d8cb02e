# SPDX-License-Identifier: MIT
"""Runs scripts/soak.sh for a short time, and tests that it detects errors."""

import os
import subprocess
import unittest

import soak
from harness import DEADLINE_S, ROOT, SANITIZED, SERVER, ServerTest
from harness.counts import count

MINUTES = count("SOAK_MINUTES")


def samples(megabytes):
    """Returns samples with these sizes of resident memory, ten seconds apart."""
    return [
        soak.Sample(10 * i, int(value * soak.MEGABYTE), 0, 0, 0)
        for i, value in enumerate(megabytes)
    ]


class JudgeTest(unittest.TestCase):
    def test_oscillation_is_not_growth(self):
        steady = samples([50.0, 52.0, 51.0] * 4)
        self.assertAlmostEqual(soak.growth_per_minute(steady, "rss"), 0)
        self.assertEqual(soak.evaluate({"server": steady}, []), [])

    def test_leak_is_growth_and_a_single_step_is_not(self):
        step = samples([50.0] * 10 + [55.0] * 2)
        self.assertEqual(soak.evaluate({"server": step}, []), [])
        leak = samples([50 + i * 2.5 / 6 for i in range(12)])
        self.assertAlmostEqual(soak.growth_per_minute(leak, "rss"), 2.5, places=2)
        (problem,) = soak.evaluate({"server": step, "replica": leak}, [])
        self.assertIn("replica grows by 2.50 MB a minute", problem)

    def test_an_hour_has_a_stricter_limit_than_a_minute(self):
        for growth, problems in ((1.0, 0), (1.1, 1)):
            hour = samples([50 + i * growth / 6 for i in range(361)])
            self.assertEqual(len(soak.evaluate({"server": hour}, [])), problems)

    def test_unmeasured_growth_is_a_problem(self):
        self.assertEqual(len(soak.evaluate({"server": samples([50.0] * 2)}, [])), 1)

    def test_faults_are_problems(self):
        steady = samples([50.0, 52.0, 51.0] * 4)
        self.assertEqual(soak.evaluate({"server": steady}, ["a fault"]), ["a fault"])


class SoakTest(ServerTest):
    def test_some_seconds_of_every_load(self):
        if SANITIZED:
            self.skipTest("a sanitizer's quarantine grows")
        done = subprocess.run(
            [ROOT / "scripts/soak.sh", "--minutes", str(MINUTES)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            timeout=MINUTES * 60 + 240,
            env={**os.environ, "BLOOMERY_SERVER": str(SERVER)},
        )  # fmt: skip
        print(done.stdout)
        verdict = f"soak of {MINUTES:g} minutes: ok"
        self.assertEqual(done.stdout.splitlines()[-1:], [verdict], done.stdout)
        self.assertEqual(done.returncode, 0)

    def test_unknown_argument_is_refused(self):
        done = subprocess.run(
            [ROOT / "scripts/soak.sh", "--minutes", "0"], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=DEADLINE_S, check=False,
            env={**os.environ, "BLOOMERY_SERVER": str(SERVER)},
        )  # fmt: skip
        self.assertEqual(done.returncode, 2)
        self.assertIn("--minutes", done.stdout)


if __name__ == "__main__":
    unittest.main()
