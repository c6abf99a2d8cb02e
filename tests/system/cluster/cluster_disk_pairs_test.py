#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests full disks in combination with `cluster-write-acks insync`. The disk of a leader or a
replica fills while replies to writes wait for all members in sync. No acknowledged write may be
lost, and no client may wait forever.
"""

import re
import time
import unittest

from harness import DEADLINE_S, disks, wait_until
from harness.cluster import ClusterTest
from harness.cluster_load import Pulse
from harness.info import info
from harness.resp import encode
from harness.shard_writer import Writer

ACKS = ("--appendonly", "yes", "--cluster-write-acks", "insync")
# Seconds after which a member that acknowledges nothing leaves the list of members in sync.
LEAVES_S = 5
WRITERS = 4
NO_MOUNTS = disks.why_no_mounts()
# The errors that one client gets, in their order. IOERR: the server has executed a write but could
# not log it. MISCONF: the server rejects later writes. MOVED: the shard has a new leader.
REFUSALS = re.compile(
    "(IOERR .*No space left on device; this write .*may be kept or lost\n)?"
    "(MISCONF .*No space left on device\n)*(MOVED .*\n)*"
)


class ClusterDiskPairsTest(ClusterTest):
    def start_with_small_disk(self, count, index):
        """Starts a leader and its replicas. Returns the servers, and the disk of server `index`."""
        if NO_MOUNTS:
            self.skipTest(NO_MOUNTS)
        disk = disks.Tmpfs(4 << 20)
        self.addCleanup(disk.remove)
        self.etcd = self.start_etcd()
        servers = [
            self.start_node(self.etcd, i, *ACKS, directory=disk.path if i == index else None)
            for i in range(count)
        ]
        for server in servers:
            server.expect_log(".*")
        self.put_topology(servers, 1)
        self.wait_for_replicas(servers, 1)
        return servers, disk

    def start_writers(self, servers):
        # A client that gets no reply within the deadline counts as one that waits forever.
        writers = [
            Writer(servers, prefix=f"w{i}-", timeout_s=DEADLINE_S) for i in range(WRITERS)
        ]
        for writer in writers:
            self.addCleanup(writer.end)
        self.wait_for_progress(writers)
        return writers

    @staticmethod
    def wait_for_progress(writers):
        since = time.monotonic()
        for writer in writers:
            writer.wait_for_progress(since)

    def wait_until_leads(self, server):
        wait_until(
            lambda: self.topology()["shards"]["s1"]["leader"] == server.node_id,
            f"{server.port} leads",
        )  # fmt: skip

    @staticmethod
    def field(server, section, name):
        with server.connect() as connection:
            return info(connection, section)[name]

    def insync(self):
        return self.topology()["shards"]["s1"]["insync"]

    def check_keys(self, server, keys):
        """Checks that the server has all these keys. READONLY lets a replica answer."""
        with server.connect() as connection:
            self.assertEqual(connection.call("READONLY"), b"OK")
            replies = [reply for reply, _ in connection.pipeline([["EXISTS", k] for k in keys])]
        missing = [key for key, reply in zip(keys, replies) if reply != 1]
        self.assertEqual(missing, [], f"of {len(keys)} acknowledged keys")

    def check_writers(self, writers, servers):
        """Ends the writers. Checks that each request got a reply or a closed connection, and that
        all servers have each acknowledged key.
        """
        for writer in writers:
            writer.end()
            self.assertFalse(writer.is_alive())
        self.assertEqual([writer.timeouts for writer in writers], [0] * len(writers))
        keys = [key for writer in writers for key, *_ in writer.acknowledged]
        for server in servers:
            self.check_keys(server, keys)
        print(f"{len(keys)} acknowledged writes were looked up", flush=True)

    # Tests of a leader whose disk is full.

    def check_refusals(self, writers):
        """Checks that each refused write got one error, which names the cause."""
        texts = ["".join(f"{reply.text}\n" for _, reply in writer.refused) for writer in writers]
        for text in texts:
            self.assertRegex(text, rf"\A(?:{REFUSALS.pattern})\Z")
        self.assertRegex("".join(texts), "IOERR|MISCONF")

    def test_full_disk_of_leader_hands_acked_writes_over(self):
        (first, second), disk = self.start_with_small_disk(2, 0)
        writers = self.start_writers([first, second])
        disk.fill()
        self.wait_until_leads(second)
        self.wait_for_progress(writers)
        self.check_refusals(writers)
        disk.free()
        self.wait_for_replicas([first, second], 1)
        self.wait_for_progress(writers)
        self.tool("failover", "s1")
        self.wait_until_leads(first)
        self.wait_for_progress(writers)
        self.wait_for_replicas([first, second], 1)
        self.check_writers(writers, [first, second])

    def hold_writes(self, leader):
        """Sends writes whose replies wait for a suspended replica. Returns a dict from each key to
        its connection.
        """
        waiting = {f"{{w}}:waiting-{number}": leader.connect() for number in range(WRITERS)}
        for key, connection in waiting.items():
            self.addCleanup(connection.close)
            connection.send(encode("SET", key, "v"))
        with leader.connect() as reader:
            wait_until(lambda: reader.call("EXISTS", *waiting) == len(waiting), "they are executed")
        return waiting

    def write_to_full_disk(self, leader):
        """Checks the replies to writes that find the disk full while other replies wait for a
        suspended replica. Each write must get one error immediately.
        """
        for pattern in ("IOERR .*may be kept or lost", "MISCONF "):
            with leader.connect() as connection:
                # A smaller value might still fit in the last page of the log on the full disk.
                commands = [("SET", f"refused-{i}", b"x" * 8192) for i in range(2)]
                replies = connection.pipeline([*commands, ("ECHO", "end")])
            self.assertEqual(replies[-1][0], b"end")
            for reply, _ in replies[:-1]:
                self.assertRegex(str(reply), pattern)
                self.assertIn("No space left on device", str(reply))

    @staticmethod
    def ends_of(waiting):
        """Reads the reply that each connection waits for. Returns the acknowledged keys."""
        acknowledged = []
        for key, connection in waiting.items():
            try:
                reply, _ = connection.read_reply()
            except (EOFError, ConnectionResetError):
                continue
            if reply == b"OK":
                acknowledged.append(key)
        return acknowledged

    def test_full_disk_keeps_no_waiting_write_unanswered(self):
        """The leader's disk fills while writes wait for a suspended replica. After the replica has
        resumed, the leader hands over to it.
        """
        (first, second), disk = self.start_with_small_disk(2, 0)
        second.suspend()
        waiting = self.hold_writes(first)
        disk.fill()
        self.write_to_full_disk(first)
        replied = [key for key, connection in waiting.items() if connection.has_reply()]
        self.assertTrue(not replied or len(self.insync()) == 1, replied)
        second.resume()
        acknowledged = self.ends_of(waiting)
        self.wait_until_leads(second)
        self.wait_for_writes(second)
        self.check_keys(second, acknowledged)
        disk.free()
        self.wait_for_replicas([first, second], 1)
        self.check_keys(first, acknowledged)

    def test_killed_leader_with_full_disk_loses_nothing(self):
        """Writes wait for a suspended replica when the leader's disk fills. The leader is killed
        before it can hand over.
        """
        (first, second, third), disk = self.start_with_small_disk(3, 0)
        writers = self.start_writers([first, second, third])
        for server in (second, third):
            server.suspend()
        waiting = self.hold_writes(first)
        disk.fill()
        self.write_to_full_disk(first)
        first.crash()
        for server in (second, third):
            server.resume()
        acknowledged = self.ends_of(waiting)
        wait_until(lambda: self.topology()["shards"]["s1"]["leader"] != first.node_id, "failover")
        self.wait_for_progress(writers)
        disk.free()
        again = self.start_node(self.etcd, 0, *ACKS, port=first.port, directory=disk.path)
        again.expect_log(".*")
        self.wait_for_replicas([again, second, third], 1)
        self.check_writers(writers, [again, second, third])
        self.check_keys(again, acknowledged)

    # Tests of a replica whose disk is full.

    def check_third_leads(self, servers, writers, disk):
        """Kills the leader while the disk of a replica is full. Checks that the third member leads,
        and that all members are in sync again when the disk has space.
        """
        leader, replica, third = servers
        leader.crash()
        self.wait_until_leads(third)
        self.wait_for_progress(writers)
        self.assertEqual(self.insync(), [third.node_id])
        disk.free()
        again = self.start_node(self.etcd, 0, *ACKS, port=leader.port, directory=leader.directory)
        again.expect_log(".*")
        servers = [again, replica, third]
        self.wait_for_replicas(servers, 1)
        self.wait_for_progress(writers)
        self.tool("failover", "s1", "--to", f"127.0.0.1:{replica.port}")
        self.wait_until_leads(replica)
        self.wait_for_progress(writers)
        self.wait_for_replicas(servers, 1)
        self.check_writers(writers, servers)

    def test_replica_with_full_disk_leaves_acks(self):
        """The replica with the full disk leaves the list of members in sync. It leaves because it
        reports that its log fails, not because its acknowledgements are late. Writers continue, and
        a failover to the third member loses no acknowledged write.
        """
        servers, disk = self.start_with_small_disk(3, 1)
        writers = self.start_writers(servers)
        pulse = Pulse()
        filled = time.monotonic()
        disk.fill()
        staying = [servers[0].node_id, servers[2].node_id]
        wait_until(lambda: self.insync() == staying, "the replica leaves the list")
        self.assertEqual(self.field(servers[1], "persistence", "aof_last_write_status"), "err")
        self.wait_for_progress(writers)
        longest = max(
            acked - sent for writer in writers for _, _, sent, acked in writer.acknowledged
            if acked > filled
        )  # fmt: skip
        print(f"the longest write took {longest:.2f} s", flush=True)
        self.assertLess(longest, LEAVES_S + pulse.stalled_since(filled))
        self.assertEqual([writer.refused for writer in writers], [[]] * WRITERS)
        self.check_third_leads(servers, writers, disk)

    def test_failover_passes_over_full_disk(self):
        """The leader is killed while the replica with the full disk may still be in sync."""
        servers, disk = self.start_with_small_disk(3, 1)
        writers = self.start_writers(servers)
        disk.fill()
        wait_until(
            lambda: self.field(servers[1], "persistence", "aof_last_write_status") == "err",
            "the append log fails",
        )  # fmt: skip
        self.check_third_leads(servers, writers, disk)


if __name__ == "__main__":
    unittest.main()
