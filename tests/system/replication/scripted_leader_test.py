#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A scripted leader sends a file of RedisBloom or valkey-bloom to a replica, which then restarts.
The folder tests/server/replication/replica/ tests leaders that send other files or broken data."""

import shutil
import tempfile
import unittest

from harness.info import info
from harness.replication import ReplicaTest
from harness.resp import ErrorReply
from harness.scripted_leader import ScriptedLeader
from harness.vector_checks import VECTORS, VectorChecks

VENDORS = ("redisbloom", "valkey-bloom")


class ScriptedLeaderTest(VectorChecks, ReplicaTest):
    def lead(self, script):
        leader = ScriptedLeader(script)
        self.addCleanup(leader.close)
        self.addCleanup(lambda: self.assertEqual(leader.problems, []))
        return leader

    def start_replica(self, *options):
        self.server = self.start_server(*options)
        return self.connect(self.server)

    def follow_script(self, script, *options):
        leader = self.lead(script)
        replica = self.start_replica(*options)
        self.follow(replica, leader.port)
        self.wait_for_link(replica)
        return leader, replica

    def check_promoted(self, replica, vendor):
        """Promotes the replica. Checks that a filter with the layout of `vendor` can still grow."""
        self.assertEqual(replica.call("REPLICAOF", "NO", "ONE"), b"OK")
        replica.call("SELECT", "0")
        for number in range(200, 1000):
            replica.call("BF.ADD", "scaled", f"scaled:{number}")
        text = str(replica.call("BF.DEBUG", "scaled"))
        self.assertNotIsInstance(replica.call("BF.INFO", "scaled"), ErrorReply, text)
        found = replica.call("BF.MEXISTS", "scaled", *[f"scaled:{n}" for n in range(1000)])
        self.assertEqual(found, [1] * 1000)
        self.assertGreater(replica.call("BF.INFO", "scaled", "FILTERS")[0], 5)

    def test_a_log_whose_base_is_a_snapshot_of_others(self):
        """A restart loads a log whose base is a snapshot of RedisBloom or valkey-bloom, followed by
        commands that this server has journalled.
        """
        for vendor in VENDORS:
            with self.subTest(vendor=vendor):
                directory = tempfile.mkdtemp(prefix="bloomery-scripted-")
                self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
                options = ("--dir", directory, "--appendonly", "yes",
                           "--enable-debug-command", "yes")  # fmt: skip
                data = (VECTORS / vendor / "dump.rdb").read_bytes()
                _, replica = self.follow_script(
                    lambda link, data=data: link.full_resync(data, 17), *options
                )
                self.check_promoted(replica, vendor)
                digest = replica.call("DEBUG", "DIGEST")
                self.assertEqual(info(replica, "persistence")["aof_rewrites"], "0")
                self.server.crash()
                replica = self.start_replica(*options)
                self.assertEqual(replica.call("DEBUG", "DIGEST"), digest)
                self.check_all(replica, vendor, changed=("scaled",))


if __name__ == "__main__":
    unittest.main()
