#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a full sync of a big filter costs in memory besides the filter.

Environment: BLOOMERY_FILTER_MB  size of the filter (default 256)
"""

import os
import unittest

from harness import SANITIZED, wait_until
from replication_harness import ReplicaTest, info

FILTER_MB = int(os.environ.get("BLOOMERY_FILTER_MB", 256))
EXTRA_MB_MAX = 64
BITS_PER_ITEM = 9.66


def peak_mb(server):
    with open(f"/proc/{server.pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    raise AssertionError("no VmHWM")


class ReplicationMemoryTest(ReplicaTest):
    def test_a_big_filter(self):
        for diskless in ("yes", "no"):
            with self.subTest(diskless=diskless):
                self.sync_twice(diskless)

    def sync_twice(self, diskless):
        options = ("--repl-diskless-sync-delay", "0", "--enable-debug-command", "yes")
        leader_server = self.start_server(*options, "--repl-diskless-sync", diskless)
        replica_server = self.start_server(*options)
        leader, replica = self.connect(leader_server), self.connect(replica_server)
        items = int(FILTER_MB * 8 * (1 << 20) / BITS_PER_ITEM)
        self.assertEqual(leader.call("BF.RESERVE", "big", "0.01", items), b"OK")
        for at in range(0, 100_000, 1000):
            leader.call("BF.MADD", "big", *range(at, at + 1000))
        before = peak_mb(replica_server)
        self.follow(replica, leader_server.port)
        self.wait_for_link(replica, 120)
        first = peak_mb(replica_server) - before - FILTER_MB
        # Once more, with as much data to give up.
        replica.call("REPLICAOF", "NO", "ONE")
        replica.call("SET", "own", "1")
        self.follow(replica, leader_server.port)
        wait_until(lambda: replica.call("EXISTS", "own") == 0, 120, "the second full sync")
        self.wait_for_link(replica, 120)
        second = peak_mb(replica_server) - before - FILTER_MB
        print(f"diskless {diskless}: {FILTER_MB} MB filter, besides it at most {first:.0f} MB, "
              f"in a second sync {second:.0f} MB; leader's peak {peak_mb(leader_server):.0f} MB")
        self.assertEqual(info(leader, "stats")["sync_full"], "2")
        self.assertEqual(replica.call("DEBUG", "DIGEST"), leader.call("DEBUG", "DIGEST"))
        if not SANITIZED:
            self.assertLess(max(first, second), EXTRA_MB_MAX)


if __name__ == "__main__":
    unittest.main()
