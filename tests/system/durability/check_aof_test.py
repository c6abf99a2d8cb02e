#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests bloomery-server --check-aof with append logs of other servers: complete, torn, damaged and
with a missing file.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import DEADLINE_S, ROOT, ServerTest

VECTORS = ROOT / "tests" / "vectors"
KINDS = ("no-live", "no-rewritten", "yes-live", "yes-rewritten")


class CheckAofTest(ServerTest):
    def check(self, *arguments):
        done = subprocess.run(
            [os.environ["BLOOMERY_SERVER"], "--check-aof", *map(str, arguments)],
            timeout=DEADLINE_S, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.decode()

    def copy(self, name):
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        target = pathlib.Path(directory) / "appendonlydir"
        shutil.copytree(VECTORS / name / "appendonlydir", target)
        return target

    def test_logs_of_other_servers_are_sound(self):
        for writer in ("redisbloom", "valkey-bloom"):
            for kind in KINDS:
                log = VECTORS / writer / f"aof-preamble-{kind}" / "appendonlydir"
                status, text = self.check(log / "appendonly.aof.manifest")
                self.assertEqual(status, 0, text)
                self.assertTrue(text.endswith("The log is sound.\n"), text)

    def test_torn_tail_is_reported_and_cut_on_demand(self):
        log = self.copy("redisbloom/aof-preamble-yes-rewritten")
        manifest, incremental = log / "appendonly.aof.manifest", log / "appendonly.aof.2.incr.aof"
        whole = incremental.read_bytes()
        incremental.write_bytes(whole[:-1])
        status, text = self.check(manifest)
        self.assertEqual(status, 1, text)
        self.assertRegex(text, "torn: .*end .*command")
        self.assertEqual(incremental.read_bytes(), whole[:-1])
        status, text = self.check(manifest, "--fix")
        self.assertEqual(status, 0, text)
        self.assertEqual(incremental.read_bytes(), whole[: whole.rindex(b"*3\r\n")])
        self.assertEqual(self.check(manifest)[0], 0)

    def test_damage_is_reported_and_never_fixed(self):
        log = self.copy("valkey-bloom/aof-preamble-no-rewritten")
        incremental = log / "appendonly.aof.2.incr.aof"
        wrong = b"x" + incremental.read_bytes()[1:]
        incremental.write_bytes(wrong)
        for arguments in ([], ["--fix"]):
            status, text = self.check(log / "appendonly.aof.manifest", *arguments)
            self.assertEqual(status, 1, text)
            self.assertRegex(text, r"offset 0: damaged: .*'\*'.*'#'")
        self.assertEqual(incremental.read_bytes(), wrong)

    def test_log_of_a_running_server_is_not_changed(self):
        log = self.copy("redisbloom/aof-preamble-yes-rewritten")
        server = self.start_server("--appendonly", "yes", directory=log.parent)
        with server.connect() as client:
            client.call("SET", "key", "value")
        before = {path: path.read_bytes() for path in log.iterdir()}
        for repair in (["--fix"], ["--truncate-to-timestamp", "1"]):
            status, text = self.check(log / "appendonly.aof.manifest", *repair)
            self.assertEqual(status, 1, text)
            self.assertRegex(text, "process uses .*end it")
        self.assertEqual({path: path.read_bytes() for path in log.iterdir()}, before)
        server.stop()
        self.assertEqual(self.check(log / "appendonly.aof.manifest", "--fix")[0], 0)

    def test_missing_file_is_reported(self):
        log = self.copy("redisbloom/aof-preamble-no-live")
        (log / "appendonly.aof.1.incr.aof").unlink()
        status, text = self.check(log / "appendonly.aof.manifest")
        self.assertEqual(status, 1, text)
        self.assertIn("appendonly.aof.1.incr.aof': No such file", text)


if __name__ == "__main__":
    unittest.main()
