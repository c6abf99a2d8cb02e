#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests the directory, arguments and hint with which scripts/run.sh starts the server. Stand-ins
replace the programs that the script calls."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A stand-in for the server. As in the real server, --health-check prints the port that the options
# set, and nothing for port 0.
SERVER = """#!/bin/sh
if [ "$1" = --health-check ]; then
  port=${PRINTED_PORT:-6379}
  [ "$port" != 0 ] && echo "port $port: Connection refused"
  exit 1
fi
pwd
for word in "$@"; do echo "$word"; done
"""


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name).resolve()
        self._write("scripts/install_deps.sh", "#!/bin/sh\n")
        self._write("bin/cmake", "#!/bin/sh\n")
        self._write("build/release/bloomery-server", SERVER)
        shutil.copy(ROOT / "scripts" / "run.sh", self.top / "scripts")

    def _write(self, name, text):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
        path.chmod(0o755)

    def _output(self, *arguments, printed_port="6379"):
        path = f"{self.top}/bin:{os.environ['PATH']}"
        done = subprocess.run(
            [self.top / "scripts" / "run.sh", *arguments],
            cwd=self.top, env={**os.environ, "PATH": path, "PRINTED_PORT": printed_port},
            stdout=subprocess.PIPE, check=True, text=True,
        )  # fmt: skip
        return done.stdout.splitlines()

    def _run(self, *arguments):
        """Returns the server's working directory and its arguments."""
        lines = self._output(*arguments)
        return lines[lines.index("") + 1 :][-1 - len(arguments) :]

    def test_hint_names_the_port_of_the_server(self):
        self._write("my.conf", "port 7123\n")
        lines = self._output("my.conf", printed_port="7123")
        self.assertIn("bloomery-server listens on port 7123; Ctrl-C stops it.", lines[1])
        self.assertIn("redis-cli -p 7123 ", lines[2])
        # run.sh cannot print the port of a server that listens only with TLS, or that reads its
        # options from standard input.
        for arguments, printed in ((["--port", "0"], "0"), (["-"], "7123")):
            hint = "\n".join(self._output(*arguments, printed_port=printed))
            self.assertIn("says where it listens", hint)
            self.assertNotIn("7123", hint)

    def test_data_folder_is_ignored_by_git(self):
        self.assertEqual(self._run("--port", "7000"), [f"{self.top}/build/data", "--port", "7000"])
        self.assertEqual(self._run(), [f"{self.top}/build/data"])
        ignored = (ROOT / ".gitignore").read_text(encoding="ascii").split()
        self.assertIn("/build/", ignored)

    def test_relative_configuration_file_is_found(self):
        self._write("my.conf", "port 7000\n")
        self.assertEqual(
            self._run("my.conf", "--port", "1"),
            [f"{self.top}/build/data", f"{self.top}/my.conf", "--port", "1"],
        )


if __name__ == "__main__":
    unittest.main()
