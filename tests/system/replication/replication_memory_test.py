#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures how much memory a full sync of a big filter needs in addition to the filter itself.

Environment: BLOOMERY_FILTER_MB  size of the filter in megabytes
"""

import contextlib
import pathlib
import threading
import unittest

from harness import SANITIZED, wait_until
from harness.counts import count
from harness.info import info
from harness.replication import ReplicaTest
from harness.replication_peer import RawReplica

FILTER_MB = count("FILTER_MB")
EXTRA_MB_MAX = 64
BITS_PER_ITEM = 9.66


def peak_mb(server):
    with open(f"/proc/{server.pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    raise AssertionError("no VmHWM")


class ChildWatcher(threading.Thread):
    """While this thread runs, it measures the peak of private memory of a server's child processes.
    """

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.peak_mb = 0
        self.seen = 0
        self.stopping = threading.Event()
        self.start()

    def run(self):
        while not self.stopping.wait(0.02):
            with contextlib.suppress(OSError):  # the child process may have ended
                for child in self.server.children():
                    self.look_at(child)

    def look_at(self, child):
        for line in pathlib.Path(f"/proc/{child}/smaps_rollup").read_text().splitlines():
            if line.startswith("Private_Dirty:"):
                self.seen += 1
                self.peak_mb = max(self.peak_mb, int(line.split()[1]) / 1024)

    def stop(self):
        self.stopping.set()
        self.join()


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
        filter_mb = leader.call("BF.INFO", "big", "SIZE")[0] / (1 << 20)
        before, leader_before = peak_mb(replica_server), peak_mb(leader_server)
        child = ChildWatcher(leader_server)
        self.follow(replica, leader_server.port)
        self.wait_for_link(replica)
        first = peak_mb(replica_server) - before - filter_mb
        # During the second sync, the replica also deletes its old filter, which has the same size.
        replica.call("REPLICAOF", "NO", "ONE")
        replica.call("SET", "own", "1")
        self.follow(replica, leader_server.port)
        wait_until(lambda: replica.call("EXISTS", "own") == 0, "the second full sync")
        self.wait_for_link(replica)
        second = peak_mb(replica_server) - before - filter_mb
        child.stop()
        leading = peak_mb(leader_server) - leader_before
        print(f"diskless {diskless}: {filter_mb:.0f} MB filter; beyond it the replica has at most "
              f"{first:.0f} MB, in a second sync {second:.0f} MB, the leader {leading:.0f} MB, "
              f"its child {child.peak_mb:.0f} MB")
        self.assertGreater(child.seen, 0)
        self.assertEqual(info(leader, "stats")["sync_full"], "2")
        self.assertEqual(replica.call("DEBUG", "DIGEST"), leader.call("DEBUG", "DIGEST"))
        if not SANITIZED:
            self.assertLess(max(first, second, leading, child.peak_mb), EXTRA_MB_MAX)

    def test_a_replica_that_does_not_read_keeps_little(self):
        """Filter arrays that the leader keeps for a replica's snapshot count against this replica's
        client-output-buffer-limit.
        """
        server = self.start_server(
            *("--repl-diskless-sync-delay", "0", "--repl-diskless-sync", "yes"),
            *("--client-output-buffer-limit", "replica 32mb 0 0", "--rdbcompression", "no"),
        )
        server.expect_log("Replica .* is disconnected|snapshot for replicas")
        leader = self.connect(server)
        leader.call("SET", "text", b"x" * (64 << 20))  # more bytes than the sockets can buffer
        self.assertEqual(leader.call("BF.RESERVE", "big", "0.01", 40_000_000), b"OK")
        leader.call("BF.ADD", "big", "item")

        def memory(name):
            return int(info(leader, "memory")[name])

        replica = RawReplica(server.port, capa=("eof", "psync2", "bloomery"))
        self.addCleanup(replica.close)
        self.assertTrue(replica.psync().startswith(b"+FULLRESYNC"))
        with_filter = memory("used_memory")
        leader.call("DEL", "big")
        wait_until(
            lambda: info(leader)["connected_slaves"] == "0"
            and memory("mem_filter_arrays_kept_for_child") == 0,
            "the replica is dropped and its child ends",
            timeout_s=20,  # less than repl-timeout, after which a replica is dropped in any case
        )
        self.assertLess(memory("used_memory"), with_filter - (40 << 20))


if __name__ == "__main__":
    unittest.main()
