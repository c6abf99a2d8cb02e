#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Data directories of Redis + RedisBloom and Valkey + valkey-bloom, served as their owners did."""

import pathlib
import shutil
import tempfile
import unittest

from harness import ServerTest
from vector_checks import VECTORS, VectorChecks

SNAPSHOTS = ("dump.rdb", "dump-uncompressed.rdb", "dump-nochecksum.rdb")
LOGS = tuple(
    f"aof-preamble-{preamble}-{moment}"
    for preamble in ("no", "yes")
    for moment in ("live", "rewritten")
)


class TakeoverTest(VectorChecks, ServerTest):
    def serve(self, *options):
        """A server on `self.directory`."""
        server = self.start_server("--dir", self.directory, *options)
        connection = server.connect()
        self.addCleanup(connection.close)
        return server, connection

    def begin(self):
        """A new directory; the server on the one before still has its lock."""
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-takeover-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def take_over_snapshot(self, vendor, snapshot):
        self.begin()
        shutil.copy(VECTORS / vendor / snapshot, self.directory / "dump.rdb")
        _, connection = self.serve()
        self.check_all(connection, vendor)

    def take_over_log(self, vendor, log):
        self.begin()
        source = VECTORS / vendor / log / "appendonlydir"
        shutil.copytree(source, self.directory / "appendonlydir", dirs_exist_ok=True)
        # Twice: what the first start read, the second finds, with the log that was begun behind it.
        for _ in range(2):
            server, connection = self.serve("--appendonly", "yes")
            changed = ("tiny", "scaled") if log.endswith("rewritten") else ()
            self.check_all(connection, vendor, changed)
            connection.call("SELECT", "0")
            if changed:
                self.assertEqual(connection.call("BF.EXISTS", "tiny", "item:50"), 1)
                self.assertEqual(connection.call("BF.EXISTS", "scaled", "scaled:200"), 1)
                self.assertEqual(connection.call("GET", "after"), b"rewrite")
            connection.call("SET", "ours", "1")
            self.assertFalse(server.stop())

    def test_snapshots(self):
        for vendor in ("redisbloom", "valkey-bloom"):
            for snapshot in SNAPSHOTS:
                with self.subTest(vendor=vendor, snapshot=snapshot):
                    self.take_over_snapshot(vendor, snapshot)

    def test_logs(self):
        for vendor in ("redisbloom", "valkey-bloom"):
            for log in LOGS:
                with self.subTest(vendor=vendor, log=log):
                    self.take_over_log(vendor, log)

    def test_keys_of_other_types_are_skipped_when_asked(self):
        for vendor in ("redisbloom", "valkey-bloom"):
            with self.subTest(vendor=vendor):
                self.begin()
                shutil.copy(VECTORS / vendor / "mixed-types.rdb", self.directory / "dump.rdb")
                server, connection = self.serve("--rdb-foreign-types", "skip")
                server.expect_log("Skipped .* of type")
                self.assertEqual(connection.call("GET", "s"), b"v")
                self.assertEqual(connection.call("BF.EXISTS", "f", "a"), 1)
                self.assertEqual(connection.call("BF.EXISTS", "g", "b"), 1)


if __name__ == "__main__":
    unittest.main()
