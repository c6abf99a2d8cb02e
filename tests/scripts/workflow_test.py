#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checks the steps of .github/workflows/ci.yml without GitHub: each step runs a command of this
repository with arguments that the command accepts."""

import json
import pathlib
import re
import shlex
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / ".github/workflows/ci.yml"
# Programs that a step may call in addition to the scripts of this tree.
PROGRAMS = ("apt-get", "cmake", "docker", "git")


def workflow():
    program = "puts YAML.load(File.read(ARGV[0])).to_json"
    done = subprocess.run(
        ["ruby", "-ryaml", "-rjson", "-e", program, WORKFLOW], stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


class WorkflowTest(unittest.TestCase):
    def setUp(self):
        self.jobs = workflow()["jobs"]
        self.commands = [
            (name, shlex.split(step["run"]))
            for name, job in self.jobs.items() for step in job["steps"] if "run" in step
        ]  # fmt: skip

    def test_steps_are_commands_of_this_tree(self):
        for job, words in self.commands:
            with self.subTest(job=job, words=words):
                if words[0].startswith("scripts/"):
                    self.assertTrue((ROOT / words[0]).stat().st_mode & 0o100)
                elif not words[0].startswith("build/"):
                    self.assertIn(words[0], PROGRAMS)

    def test_presets_and_built_programs_exist(self):
        presets = json.loads((ROOT / "CMakePresets.json").read_text("ascii"))
        names = {preset["name"] for preset in presets["configurePresets"]}
        used = [words[words.index("--preset") + 1] for _, words in self.commands
                if "--preset" in words]  # fmt: skip
        self.assertTrue(used)
        self.assertLessEqual(set(used), names)
        for _, words in self.commands:
            if words[0].startswith("build/"):
                self.assertIn(words[0].split("/")[1], used)

    def test_scripts_take_their_arguments(self):
        """Each argument of a step must occur in the usage lines at the top of the script that the
        step runs."""
        for _, words in self.commands:
            if not words[0].startswith("scripts/"):
                continue
            text = (ROOT / words[0]).read_text("utf-8")
            usage = re.search(r"^# Usage: .*(?:\n#  .*)*", text, re.MULTILINE)[0]
            for word in words[1:]:
                self.assertIn(word, usage, words[0])

    def test_every_job_has_a_limit_and_no_right_to_write(self):
        self.assertEqual(workflow()["permissions"], {"contents": "read"})
        for name, job in self.jobs.items():
            self.assertIn("timeout-minutes", job, name)

    def test_platforms_are_those_of_the_page(self):
        page = (ROOT / "docs/platforms.md").read_text("utf-8")
        page = page.split("## Platforms")[1].split("\n## ")[0]
        for name, job in self.jobs.items():
            images = [row["image"] for row in job.get("strategy", {}).get("matrix", {})
                      .get("include", [])]  # fmt: skip
            if "container" in job and not images:
                images = [job["container"]["image"]]
            for image in images:
                system, version = image.split(":")
                self.assertIn(f"| {system.capitalize()} {version} ", page, name)


if __name__ == "__main__":
    unittest.main()
