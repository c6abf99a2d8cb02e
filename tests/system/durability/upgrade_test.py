#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that this version loads the files and replication streams of earlier versions, and then
answers as those versions did. The page docs/upgrading.md promises this. The script
tests/vectors/make_upgrade.py recorded the files and the answers.
"""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import DEADLINE_S, ROOT, SERVER, ServerTest, wait_until
from harness.info import info
from harness.resp import plain
from harness.scripted_leader import ScriptedLeader

RECORDED = sorted((ROOT / "tests/vectors/upgrade").iterdir())
# The key that the last command of a recorded replication stream sets, to mark the end of the
# stream.
END_MARK = "end-of-the-stream"


class UpgradeTest(ServerTest):
    def directory(self):
        folder = tempfile.mkdtemp(prefix="bloomery-upgrade-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        return pathlib.Path(folder)

    def check(self, version, client):
        for question, expected in json.loads((version / "expected.json").read_text("ascii")):
            with self.subTest(version=version.name, question=question[:2]):
                self.assertEqual(plain(client.call(*question)), expected)

    def test_something_was_recorded(self):
        self.assertIn("before-1.0", [version.name for version in RECORDED])

    def test_snapshot_is_loaded(self):
        for version in RECORDED:
            directory = self.directory()
            shutil.copy(version / "dump.rdb", directory)
            self.check(version, self.serve_directory(directory)[1])

    def test_log_is_loaded_and_continued(self):
        for version in RECORDED:
            directory = self.directory()
            shutil.copytree(version / "appendonlydir", directory / "appendonlydir")
            options = ("--appendonly", "yes")
            server, client = self.serve_directory(directory, *options)
            self.check(version, client)
            # The server appends new commands to the log of the earlier version.
            self.assertEqual(client.call("BF.ADD", "late", "item:new"), 1)
            server.crash()
            _, client = self.serve_directory(directory, *options)
            self.assertEqual(client.call("BF.EXISTS", "late", "item:new"), 1)
            self.assertEqual(client.call("BF.EXISTS", "late", "item:0"), 1)

    def test_replica_follows_an_older_leader(self):
        for version in RECORDED:
            leader = ScriptedLeader(lambda link, version=version: self.send(link, version))
            self.addCleanup(leader.close)
            _, client = self.serve_directory(
                self.directory(), "--replicaof", f"127.0.0.1 {leader.port}"
            )
            wait_until(
                lambda client=client: client.call("EXISTS", END_MARK) == 1, "the stream's end"
            )
            self.assertEqual(info(client)["master_link_status"], "up")
            self.assertEqual(client.call("REPLICAOF", "NO", "ONE"), b"OK")
            self.assertEqual(client.call("DEL", END_MARK), 1)
            self.check(version, client)
            self.assertEqual(leader.problems, [])

    @staticmethod
    def send(link, version):
        link.full_resync((version / "stream-snapshot.rdb").read_bytes())
        link.send((version / "stream.bin").read_bytes())

    def test_tools_read_the_files(self):
        for version in RECORDED:
            for arguments in (
                ("--check-rdb", version / "dump.rdb"),
                ("--check-aof", version / "appendonlydir/appendonly.aof.manifest"),
            ):
                done = subprocess.run(
                    [SERVER, *arguments], capture_output=True, text=True, timeout=DEADLINE_S,
                    check=False,
                )  # fmt: skip
                self.assertEqual(done.returncode, 0, done.stdout)

    def test_native_version_1_writes_the_earlier_bytes(self):
        """Servers before 1.0 can load what a server with bf-native-version 1 writes."""
        recorded = (ROOT / "tests/vectors/bloomery/dump/native.bin").read_bytes()
        for version in (1, 2):
            client = self.serve_directory(self.directory(), "--bf-native-version", version)[1]
            client.call("BF.RESERVE", "native", "0.01", 200)
            client.call("BF.MADD", "native", *(f"item:{number}" for number in range(150)))
            self.assertEqual(client.call("DUMP", "native") == recorded, version == 1, version)

    def test_later_format_is_refused_by_name(self):
        """If a log has a later format version, the start fails and changes no file."""
        for version in RECORDED:
            directory = self.directory()
            shutil.copytree(version / "appendonlydir", directory / "appendonlydir")
            (log,) = (directory / "appendonlydir").glob("*.incr.aof")
            later = log.read_bytes().replace(b"#bloomery-ver:1", b"#bloomery-ver:2", 1)
            log.write_bytes(later)
            done = subprocess.run(
                [SERVER, "--dir", directory, "--port", "0", "--unixsocket", directory / "socket",
                 "--appendonly", "yes"],
                capture_output=True, text=True, timeout=DEADLINE_S, check=False,
            )  # fmt: skip
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stdout + done.stderr,
                             f"{log.name}', offset 0: damaged: .*later version")  # fmt: skip
            self.assertEqual(log.read_bytes(), later)


if __name__ == "__main__":
    unittest.main()
