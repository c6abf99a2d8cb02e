#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that rename-command affects only clients: append logs and replication streams have the
original names of commands.
"""

import pathlib
import shutil
import tempfile
import unittest

from harness.replication import ReplicaTest

RENAMES = ("--rename-command", "SET", "WRITE", "--rename-command", "BF.ADD", "ADD-ITEM",
           "--rename-command", "APPEND", "EXTEND", "--rename-command", "FLUSHALL", "",
           "--rename-command", "SELECT", "USE")  # fmt: skip


class RenamedCommandsTest(ReplicaTest):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-renamed-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def serve(self, *options):
        return self.serve_directory(
            self.directory, "--appendonly", "yes", "--appendfsync", "always", *options
        )

    def fill(self, connection):
        self.assertEqual(connection.call("WRITE", "text", "a"), b"OK")
        self.assertEqual(connection.call("EXTEND", "text", "b"), 2)
        self.assertEqual(connection.call("ADD-ITEM", "filter", "item"), 1)
        self.assertEqual(connection.call("USE", "1"), b"OK")
        self.assertEqual(connection.call("WRITE", "text", "c"), b"OK")
        self.assertEqual(connection.call("USE", "0"), b"OK")

    def check(self, connection, select="USE"):
        self.assertEqual(connection.call(select, "0"), b"OK")
        self.assertEqual(connection.call("GET", "text"), b"ab")
        self.assertEqual(connection.call("BF.EXISTS", "filter", "item"), 1)
        self.assertEqual(connection.call(select, "1"), b"OK")
        self.assertEqual(connection.call("GET", "text"), b"c")
        self.assertEqual(connection.call(select, "0"), b"OK")

    def test_a_restart_loads_the_log(self):
        server, connection = self.serve(*RENAMES)
        self.fill(connection)
        self.assertFalse(server.stop())
        server, connection = self.serve(*RENAMES)
        self.check(connection)
        server.crash()
        server, connection = self.serve(*RENAMES)
        self.check(connection)
        # A server without renamed commands can load the log that the server with renamed commands
        # wrote.
        self.assertFalse(server.stop())
        _, connection = self.serve()
        self.check(connection, "SELECT")

    def test_renames_may_follow_the_log(self):
        server, connection = self.serve()
        for command in (("SET", "gone", "1"), ("FLUSHALL",), ("SET", "text", "ab"),
                        ("BF.ADD", "filter", "item"), ("SELECT", "1"),
                        ("SET", "text", "c")):  # fmt: skip
            connection.call(*command)
        server.crash()
        _, connection = self.serve(*RENAMES)
        self.check(connection)
        self.assertEqual(connection.call("EXISTS", "gone"), 0)

    def test_a_replica_follows_whatever_the_renames(self):
        leader, connection = self.serve(*RENAMES)
        self.fill(connection)
        for renames, select in ((RENAMES, "USE"), ((), "SELECT")):
            with self.subTest(renames=renames):
                replica = self.start_server(*renames)
                at_replica = replica.connect()
                self.addCleanup(at_replica.close)
                self.follow(at_replica, leader.port)
                connection.call("EXTEND", "text", "!")
                connection.call("WRITE", "text", "ab")
                connection.call("ADD-ITEM", "filter", "other")
                self.wait_until_equal_offsets(connection, at_replica)
                self.check(at_replica, select)
                self.assertEqual(at_replica.call("BF.EXISTS", "filter", "other"), 1)


if __name__ == "__main__":
    unittest.main()
