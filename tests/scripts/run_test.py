#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Where scripts/run.sh runs the server, with stand-ins for what it calls."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER = '#!/bin/sh\npwd\nfor word in "$@"; do echo "$word"; done\n'


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

    def _run(self, *arguments):
        """The server's working directory and its arguments."""
        done = subprocess.run(
            [self.top / "scripts" / "run.sh", *arguments],
            cwd=self.top, env={**os.environ, "PATH": f"{self.top}/bin:{os.environ['PATH']}"},
            stdout=subprocess.PIPE, check=True, text=True,
        )  # fmt: skip
        lines = done.stdout.splitlines()
        return lines[lines.index("") + 1 :][-1 - len(arguments) :]

    def test_data_go_where_git_does_not_look(self):
        self.assertEqual(self._run("--port", "7000"), [f"{self.top}/build/data", "--port", "7000"])
        self.assertEqual(self._run(), [f"{self.top}/build/data"])
        ignored = (ROOT / ".gitignore").read_text(encoding="ascii").split()
        self.assertIn("/build/", ignored)

    def test_a_configuration_file_is_found_from_there(self):
        self._write("my.conf", "port 7000\n")
        self.assertEqual(
            self._run("my.conf", "--port", "1"),
            [f"{self.top}/build/data", f"{self.top}/my.conf", "--port", "1"],
        )


if __name__ == "__main__":
    unittest.main()
