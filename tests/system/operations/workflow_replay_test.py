#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Replays the steps of .github/workflows/ci.yml, as far as a machine without GitHub and Docker can.

Two steps differ from the workflow's, because the sources are already compiled when this test runs.
The build step only prints its commands. The release step packs the existing build.
tests/scripts/workflow_test.py checks the arguments of all steps.
"""

import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

from harness import CLUSTER_TOOL, DEADLINE_S, ROOT, SERVER
from harness.yaml_files import documents_of

WORKFLOW = ROOT / ".github/workflows/ci.yml"
# The steps that are not replayed, by their first words, with the reason.
NOT_REPLAYED = {
    "apt-get update": "would change this machine; image_test.py installs packages in a root",
    "scripts/test.sh": "runs this test",
    "docker buildx": "needs Docker; image_test.py replays the Dockerfile",
}


class WorkflowReplayTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.build = self.folder / "build"
        self.artefacts = self.folder / "artefacts"
        # Maps the first words of a step to a function that adapts the step to this machine. The
        # function may replace paths in build/server, or change other arguments.
        self.replayed = {
            "git config --global": lambda words: words,
            "scripts/install_deps.sh server": lambda words: words,
            "cmake --preset server": lambda words: [*words, "-B", self.build],
            "cmake --build --preset": lambda words: ["cmake", "--build", self.build, *words[4:],
                                                     "--", "-t", "commands"],
            "build/server/bloomery-server --version": lambda words: [SERVER, *words[1:]],
            "scripts/release.sh --dry-run": lambda words: [
                *words, "--build", SERVER.parent, "--out", self.artefacts
            ],
        }  # fmt: skip

    def run_step(self, words):
        done = subprocess.run(
            [str(word) for word in words], cwd=ROOT, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=4 * DEADLINE_S, check=False,
            env={**os.environ, "HOME": str(self.folder), "PWD": str(ROOT)},
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}")
        return done.stdout

    def replay(self, step):
        """Runs a step of a job. Returns its output, or None if the step is not replayed."""
        if any(step.startswith(begin) for begin in NOT_REPLAYED):
            return None
        (adapt,) = [adapt for begin, adapt in self.replayed.items() if step.startswith(begin)]
        return self.run_step(adapt(shlex.split(os.path.expandvars(step))))

    def steps(self, job):
        (workflow,) = documents_of(WORKFLOW)
        return [step["run"] for step in workflow["jobs"][job]["steps"] if "run" in step]

    def test_build_job(self):
        said = [self.replay(step) for step in self.steps("build")]
        for program in (SERVER, CLUSTER_TOOL):
            self.assertIn(f" -o {program.name} ", said[-2])
        self.assertIn("bloomery=", said[-1])

    def test_artefacts_job(self):
        said = [self.replay(step) for step in self.steps("artefacts")][-1]
        names = sorted(path.name for path in self.artefacts.iterdir())
        self.assertEqual([name.partition("_")[0] for name in names if name.endswith(".deb")],
                         ["bloomery"])  # fmt: skip
        self.assertIn("SHA256SUMS", names)
        for name in names:
            if name != "SHA256SUMS":
                self.assertIn(f"  {name}\n", said)

    def test_other_jobs_have_known_steps(self):
        for job in ("test", "image"):
            for step in self.steps(job):
                self.assertIsNone(self.replay(step), step)


if __name__ == "__main__":
    unittest.main()
