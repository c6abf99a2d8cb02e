#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests scripts/release.sh in a small repository, with stand-ins for the builds."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAINTAINER = "A Person <person@bloomery.example>"
CHANGELOG = """# Changelog

## [Unreleased]

## [1.2.3] - 2026-01-31

### Added

- A thing.

## [1.2.2] - 2026-01-01

- An older thing.
"""
# A stand-in for cpack, which writes one package into the folder that the option -B names.
CPACK = """#!/bin/sh
while [ "$1" != -B ]; do shift; done
mkdir -p "$2/_CPack_Packages" && echo packed >"$2/bloomery_1.2.3_amd64.deb"
"""
CMAKE = """#!/bin/sh
echo "$@" >>"$STAND_IN_LOG"
"""
# A stand-in for scripts/try_platform.sh, which writes a package into $2/build/pack.
TRY_PLATFORM = """#!/bin/sh
mkdir -p "$2/build/pack" && echo packed >"$2/build/pack/bloomery_1.2.3_arm64.deb"
echo "$1: ${STAND_IN_PLATFORM-passed}"
"""


PACKAGES = ("bloomery_1.2.3_amd64.deb", "bloomery_1.2.3_arm64.deb")


class ReleaseTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name).resolve() / "tree"
        self.bin = self.top.parent / "bin"
        self.log = self.top.parent / "log"
        self.log.touch()
        for path, text in (
            (self.top / "CMakeLists.txt", "project(bloomery VERSION 1.2.3 LANGUAGES CXX)\n"),
            (self.top / "CHANGELOG.md", CHANGELOG),
            (self.top / ".gitignore", "/build/\n"),
            (self.bin / "cpack", CPACK),
            (self.bin / "cmake", CMAKE),
            (self.top / "scripts/try_platform.sh", TRY_PLATFORM),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="ascii")
            path.chmod(0o755)
        shutil.copy(ROOT / "scripts/release.sh", self.top / "scripts")
        self.git("init", "-q")
        self.commit()

    def git(self, *words):
        done = subprocess.run(
            ["git", "-c", "user.name=x", "-c", "user.email=x@x.example", *words], cwd=self.top,
            stdout=subprocess.PIPE, check=True, text=True,
        )  # fmt: skip
        return done.stdout

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def change(self, old, new):
        path = self.top / "CHANGELOG.md"
        path.write_text(path.read_text("ascii").replace(old, new), encoding="ascii")

    def release(self, *options, maintainer=MAINTAINER, **more):
        environment = {
            **os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "STAND_IN_LOG": str(self.log),
            "BLOOMERY_MAINTAINER": maintainer, "GIT_COMMITTER_NAME": "x",
            "GIT_COMMITTER_EMAIL": "x@x.example", **more,
        }  # fmt: skip
        done = subprocess.run(
            [self.top / "scripts/release.sh", *options], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    def test_dry_run_shows_everything_and_tags_nothing(self):
        status, said = self.release("--dry-run")
        self.assertEqual(status, 0, said)
        self.assertIn(f"version 1.2.3, commit {self.git('rev-parse', 'HEAD').strip()}\n", said)
        self.assertIn("changes:\n### Added\n\n- A thing.\n\narm64: passed\nartefacts", said)
        self.assertNotIn("older thing", said)
        self.assertNotIn("refused", said)
        out = self.top / "build/artefacts"
        self.assertEqual(
            sorted(path.name for path in out.iterdir()),
            ["SHA256SUMS", "bloomery-1.2.3.tar.gz", *PACKAGES],
        )
        for name in ("bloomery-1.2.3.tar.gz", *PACKAGES):
            data = (out / name).read_bytes()
            line = f"{len(data):10}  {hashlib.sha256(data).hexdigest()}  {name}\n"
            self.assertIn(line, said)
        self.assertEqual(self.git("tag"), "")
        built = self.log.read_text("ascii")
        for preset in ("server", "portable"):
            self.assertIn(f"--preset {preset} -D BLOOMERY_MAINTAINER={MAINTAINER}", built)

    def test_existing_build_is_packed_without_building(self):
        status, said = self.release("--dry-run", "--build", "build/x", "--out", "build/here")
        self.assertEqual(status, 0, said)
        self.assertEqual(self.log.read_text("ascii"), "")
        self.assertTrue((self.top / "build/here/bloomery_1.2.3_amd64.deb").exists())

    def test_only_artefacts_are_deleted(self):
        out = self.top / "build/here"
        out.mkdir(parents=True)
        options = ("--dry-run", "--build", "build/x", "--out", "build/here")
        old = [out / name for name in ("bloomery-1.2.2.tar.gz", "bloomery_1.2.2_amd64.deb")]
        for path in old:
            path.touch()
        status, said = self.release(*options)
        self.assertEqual(status, 0, said)
        self.assertFalse(any(path.exists() for path in old))
        for name in ("bloomery/README", "notes.txt", ".hidden", "bloomery-src/x.tar.gz"):
            with self.subTest(name=name):
                path = out / name
                path.parent.mkdir(exist_ok=True)
                path.touch()
                status, said = self.release(*options)
                self.assertEqual(status, 1, said)
                self.assertIn(f"{out}/{name.split('/')[0]} is no artefact of a release", said)
                self.assertTrue(path.exists())
                self.assertTrue((out / "SHA256SUMS").exists())
                shutil.rmtree(path.parent if "/" in name else path, ignore_errors=True)
                path.unlink(missing_ok=True)

    def test_release_is_tagged_with_its_changes(self):
        status, said = self.release()
        self.assertEqual(status, 0, said)
        self.assertEqual(self.git("tag").strip(), "v1.2.3")
        message = self.git("for-each-ref", "--format=%(contents)", "refs/tags/v1.2.3")
        self.assertEqual(message.strip(), "Bloomery 1.2.3\n\n### Added\n\n- A thing.")
        # A second release of the same version is refused.
        status, said = self.release()
        self.assertEqual(status, 1)
        self.assertIn("refused: the tag v1.2.3 exists", said)

    def test_release_needs_a_package_for_arm64(self):
        reason = "skipped: only root can enter another root"
        status, said = self.release("--dry-run", STAND_IN_PLATFORM=reason)
        self.assertEqual(status, 0, said)
        self.assertIn(f"arm64: {reason}\n", said)
        status, said = self.release(STAND_IN_PLATFORM=reason)
        self.assertEqual(status, 1)
        self.assertIn("refused: there is no package for arm64\n", said)
        self.assertEqual(self.git("tag"), "")

    def check_refused(self, reason, **options):
        status, said = self.release(**options)
        self.assertEqual(status, 1, said)
        self.assertIn(f"refused: {reason}\n", said)
        self.assertEqual(self.git("tag"), "")
        self.assertFalse((self.top / "build").exists())
        # With --dry-run, the script prints why it would refuse the release, and continues.
        status, said = self.release("--dry-run", **options)
        self.assertEqual(status, 0, said)
        self.assertIn(f"refused: {reason}\n", said)

    def test_release_needs_a_maintainer(self):
        for wrong in ("", "nobody", "<a@b.example>", "A Person <nowhere>"):
            with self.subTest(maintainer=wrong):
                shutil.rmtree(self.top / "build", ignore_errors=True)
                self.check_refused("BLOOMERY_MAINTAINER is no NAME <ADDRESS>", maintainer=wrong)

    def test_release_needs_a_section_of_its_version(self):
        self.change("## [1.2.3]", "## [1.2.4]")
        self.commit()
        self.check_refused("CHANGELOG.md has no section [1.2.3]")

    def test_section_needs_a_date(self):
        self.change("[1.2.3] - 2026-01-31", "[1.2.3]")
        self.commit()
        self.check_refused("the section [1.2.3] of CHANGELOG.md has no date")

    def test_unreleased_entries_are_refused(self):
        self.change("## [Unreleased]\n", "## [Unreleased]\n\n- Not moved.\n")
        self.commit()
        self.check_refused("CHANGELOG.md has entries under [Unreleased]")

    def test_many_unreleased_entries_are_refused(self):
        # The pipe to a program that ends at the first match would break, and pipefail would report
        # a failure instead of the match.
        entries = "- Not moved.\n" * 100000
        self.change("## [Unreleased]\n", f"## [Unreleased]\n\n{entries}")
        self.commit()
        status, said = self.release()
        self.assertEqual(status, 1)
        self.assertIn("refused: CHANGELOG.md has entries under [Unreleased]\n", said)

    def test_uncommitted_changes_are_refused(self):
        self.change("A thing", "A changed thing")
        self.check_refused("the tree has changes that are not committed")

    def test_wrong_options_print_the_usage(self):
        for options in (["--wrong"], ["--build", "x"], ["--dry-run", "--out"]):
            status, said = self.release(*options)
            self.assertEqual(status, 2, options)
            self.assertIn("Usage:", said)


class VersionTest(unittest.TestCase):
    """CMakeLists.txt sets the version. The other files of this tree must state the same version."""

    def setUp(self):
        cmake = (ROOT / "CMakeLists.txt").read_text("ascii")
        self.version = cmake.split("project(bloomery VERSION ")[1].split()[0]

    def test_chart_installs_this_version(self):
        chart = (ROOT / "conf/helm/bloomery/Chart.yaml").read_text("ascii")
        self.assertIn(f'appVersion: "{self.version}"\n', chart)

    def test_changelog_begins_with_this_version(self):
        text = (ROOT / "CHANGELOG.md").read_text("utf-8")
        titles = re.findall(r"^## (.*)", text, re.MULTILINE)
        self.assertEqual(titles[0], "[Unreleased]")
        self.assertRegex(titles[1], rf"^\[{re.escape(self.version)}\] - \d{{4}}-\d\d-\d\d$")

    def test_no_command_is_newer_than_this_version(self):
        """docs/commands.md states which version of Bloomery introduced each of its own commands."""
        added = (ROOT / "docs/commands.md").read_text("utf-8")
        added = added.split("\n## Bloom filters: what Bloomery adds\n")[1].split("\n## ")[0]
        current = [int(part) for part in self.version.split(".")]
        stated = re.findall(r"\*Since (\d+)\.(\d+)\.(\d+)\.", added)
        self.assertTrue(stated)
        for version in stated:
            self.assertLessEqual([int(part) for part in version], current)


if __name__ == "__main__":
    unittest.main()
