#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests scripts/install_deps.sh on systems with different packages. Stand-ins for apt and dpkg
install nothing."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/install_deps.sh"
SUPPORTED = "supported: Debian 12 and 13"
# $OFFERED names the versions that the system offers, as `package=version`. All other packages have
# version 2, unless $MISSING names them.
STAND_INS = {
    "apt-get": 'echo "$@" >>"$STAND_IN_LOG"',
    "apt-cache": """case " $MISSING " in *" $2 "*) exit 0 ;; esac
version=2
for offer in $OFFERED; do [ "${offer%%=*}" != "$2" ] || version=${offer#*=}; done
echo "  Candidate: $version" """,
    "dpkg-query": """for last; do :; done
case " $INSTALLED " in *" all "* | *" $last "*) printf installed ;; *) exit 1 ;; esac""",
    # `id` reports root, so that the script needs no sudo. The script calls `tee`, `chmod` and `rm`
    # to write and remove /usr/sbin/policy-rc.d, and `systemctl` to disable services.
    "id": "echo 0",
    "tee": "cat >/dev/null",
    "chmod": "",
    "rm": "",
    "systemctl": "",
}


class InstallDepsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name)
        self.log = self.bin / "log"
        for name, text in STAND_INS.items():
            path = self.bin / name
            path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
            path.chmod(0o755)

    def install(self, *words, path=None, **system):
        """Runs the script. Returns its exit status, its output, and the packages that it installed.
        """
        self.log.write_text("", encoding="ascii")
        done = subprocess.run(
            ["/bin/bash", SCRIPT, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False,
            env={**os.environ, "PATH": path or f"{self.bin}:{os.environ['PATH']}",
                 "STAND_IN_LOG": str(self.log), "OFFERED": "", "MISSING": "", "INSTALLED": "",
                 **system},
        )  # fmt: skip
        installed = re.search(r" install --no-install-recommends (.*)", self.log.read_text("ascii"))
        return done.returncode, done.stdout, installed[1].split() if installed else []

    def test_prints_nothing_if_all_is_installed(self):
        self.assertEqual(self.install("server", INSTALLED="all"), (0, "", []))

    def test_installs_what_is_missing(self):
        status, said, installed = self.install("server", INSTALLED="cmake")
        self.assertEqual(status, 0, said)
        self.assertIn("libfmt-dev", installed)
        self.assertNotIn("cmake", installed)
        self.assertNotIn("libgtest-dev", installed)
        self.assertIn("libgtest-dev", self.install("run")[2])

    def test_takes_the_first_boost_that_is_new_enough(self):
        plain, versioned = {"libboost-dev", "libboost-json-dev"}, {
            "libboost1.81-dev", "libboost-json1.81-dev"
        }  # fmt: skip
        for version, chosen in (("1.74.0.3", versioned), ("1.83.0.1", plain)):
            offered = " ".join([f"{name}={version}" for name in plain]
                               + [f"{name}=1.81.0" for name in versioned])  # fmt: skip
            installed = self.install("server", OFFERED=offered)[2]
            self.assertEqual({name for name in installed if "boost" in name}, chosen)

    def test_refuses_a_system_with_an_older_boost(self):
        offered = "libboost-dev=1.74.0.3 libboost-json-dev=1.74.0.3"
        missing = "libboost1.81-dev libboost-json1.81-dev"
        status, said, installed = self.install("server", OFFERED=offered, MISSING=missing)
        self.assertEqual((status, installed), (1, []))
        self.assertIn(" has no Boost 1.81 or later, with libboost-json-dev; " + SUPPORTED, said)

    def test_names_a_package_that_the_system_lacks(self):
        status, said, installed = self.install("server", MISSING="libspdlog-dev liblzf-dev")
        self.assertEqual((status, installed), (1, []))
        self.assertIn(" has no package liblzf-dev libspdlog-dev; " + SUPPORTED, said)

    def test_packages_of_the_tests_are_those_of_debian_12(self):
        status, said, installed = self.install("test", MISSING="clang-14")
        self.assertEqual((status, installed), (1, []))
        self.assertRegex(said, r" has no package clang-14; supported: Debian 12\n")

    def test_names_supported_systems_where_apt_is_missing(self):
        status, said, _ = self.install("server", path="/nowhere")
        self.assertEqual(status, 1)
        self.assertIn("no apt-get; " + SUPPORTED, said)
        self.assertIn("docs/platforms.md", said)

    def test_wrong_argument_prints_the_usage(self):
        status, said, _ = self.install("everything")
        self.assertEqual(status, 2)
        self.assertIn("usage: ", said)


if __name__ == "__main__":
    unittest.main()
