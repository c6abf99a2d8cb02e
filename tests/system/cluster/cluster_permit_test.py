#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests which writes a leader may acknowledge after it has lost both etcd and its replica, or after
its lease has ended. The cluster has one shard, because all shards follow the same rules.
"""

import time
import unittest

from harness import let_time_pass, wait_until
from harness.cluster import ClusterTest
from harness.info import info
from harness.replication import offset
from harness.shard_writer import KEY_TAG, Writer


class ClusterPermitTest(ClusterTest):
    SERVERS = 2
    ETCD_MEMBERS = 1

    def setUp(self):
        self.servers = self.start_cluster(1, self.SERVERS - 1)
        for server in self.servers:
            # The loss of a leader or of etcd causes many warnings, so the test accepts all log
            # lines.
            server.expect_log(".*")
        self.wait_for_replicas(self.servers, 1)
        self.leader, self.replica = self.servers

    def start_writer(self, **options):
        writer = Writer(self.servers, **options)
        self.addCleanup(writer.end)
        writer.wait_for_progress(time.monotonic())
        return writer

    def shard(self):
        return self.topology()["shards"]["s1"]

    def check_present(self, server, entries):
        with server.connect() as connection:
            first = entries[0][0]
            wait_until(lambda: isinstance(connection.call("EXISTS", first), int), "it serves")
            missing = [key for key, *_ in entries if connection.call("EXISTS", key) != 1]
        self.assertEqual(missing, [], f"of {len(entries)} acknowledged keys")

    def test_isolated_leader_stops_serving(self):
        writer = self.start_writer()
        for member in self.etcd.members:
            member.suspend()
        self.replica.suspend()
        self.wait_for_state(self.leader, b"fail")
        quiet = time.monotonic()
        tried = writer.tried
        wait_until(lambda: writer.tried > tried + 2, "more writes are tried")
        self.assertLess(writer.acknowledged[-1][2], quiet)
        self.replica.resume()
        writer.wait_for_progress(quiet)
        for member in self.etcd.members:
            member.resume()

    def test_leader_without_data_yields_to_its_replica(self):
        """The leader is killed, and restarts with an old snapshot before the cluster detects its
        death. Its replica must not load that snapshot."""
        writer = self.start_writer()
        with self.leader.connect() as connection:
            connection.call("SAVE")
        known = len(writer.acknowledged)
        wait_until(lambda: len(writer.acknowledged) > known + 100, "writes after the snapshot")
        writer.end()
        wait_until(self.replica_has_all, "the replica has all")
        self.leader.crash()
        again = self.start_node(
            self.etcd, 0, "--repl-diskless-sync-delay", "0", port=self.leader.port,
            directory=self.leader.directory,
        )  # fmt: skip
        again.expect_log(".*")
        wait_until(
            lambda: self.shard()["leader"] == self.replica.node_id, "the replica leads"
        )  # fmt: skip
        self.wait_for_state(self.replica)
        self.check_present(self.replica, writer.acknowledged)
        self.wait_for_replicas([again, self.replica], 1)
        with again.connect() as connection:
            connection.call("READONLY")
            missing = [k for k, *_ in writer.acknowledged if connection.call("GET", k) != b"v"]
        self.assertEqual(missing, [], "it has them again")

    def test_leader_without_its_disk_waits_for_its_replica(self):
        """Both servers are killed. The leader restarts first, with its id but an empty directory.
        It must not lead before its replica has restarted."""
        writer = self.start_writer()
        wait_until(lambda: len(writer.acknowledged) > 200, "some writes")
        writer.end()
        wait_until(self.replica_has_all, "the replica has all")
        with self.replica.connect() as connection:
            connection.call("SAVE")
        # The leader is killed first. It would otherwise remove its killed replica from the list of
        # members in sync.
        self.leader.crash()
        self.replica.crash()
        empty = self.start_node(self.etcd, 0, port=self.leader.port)
        empty.expect_log(".*")
        empty.wait_for_log("leads its shard .*lacks data")
        let_time_pass(12, why="four time-outs and more: for members that are up it waits no longer")
        with empty.connect() as connection:
            refused = connection.call("SET", f"{KEY_TAG}:new", "v")
        self.assertIn("CLUSTERDOWN", str(refused))
        again = self.start_node(
            self.etcd, 1, port=self.replica.port, directory=self.replica.directory
        )
        again.expect_log(".*")
        wait_until(lambda: self.shard()["leader"] == again.node_id, "the replica leads")
        self.wait_for_state(again)
        self.check_present(again, writer.acknowledged)
        self.wait_for_replicas([empty, again], 1)
        self.check_present(again, writer.acknowledged)

    def replica_has_all(self):
        with self.leader.connect() as ours, self.replica.connect() as theirs:
            wanted = offset(ours)
            return int(info(theirs)["slave_repl_offset"]) >= wanted

    def test_first_of_two_processes_with_one_id_serves(self):
        self.replica.crash()
        twin = self.start_node(self.etcd, 0)
        twin.expect_log(".*")
        writer, of_twin = self.start_writer(only=self.leader), Writer([twin], only=twin)
        self.addCleanup(of_twin.end)
        let_time_pass(4, why="longer than a lease, which the first one renews")
        self.assertEqual(of_twin.acknowledged, [])
        # Suspends the leader for longer than its lease. The second process (twin), which has the
        # same id, becomes the leader. It remains the leader after the first process resumes.
        self.leader.suspend()
        of_twin.wait_for_progress(time.monotonic())
        self.leader.resume()
        tried = writer.tried
        wait_until(lambda: writer.tried > tried + 50, "the first one is asked again")
        self.assertLess(writer.acknowledged[-1][3], of_twin.acknowledged[0][3])
        writer.end()
        of_twin.wait_for_progress(time.monotonic())

    def test_a_lease_that_ends_early_loses_nothing(self):
        writer = self.start_writer()
        wait_until(lambda: len(writer.acknowledged) > 100, "some writes")
        replicated = list(writer.acknowledged)
        wait_until(self.replica_has_all, "the replica has them")
        text = self.etcd.control("lease", "list")
        leases = [word for word in text.split() if len(word) >= 15 and word.isalnum()]
        self.assertEqual(len(leases), self.SERVERS, text)
        revoked = time.monotonic()
        for lease in leases:
            self.etcd.control("lease", "revoke", lease, check=False)
        writer.wait_for_progress(revoked)
        let_time_pass(4, why="a failover that nothing asks for would come in it")
        writer.end()
        leader = next(s for s in self.servers if s.node_id == self.shard()["leader"])
        self.assertLessEqual(len({entry[1] for entry in writer.acknowledged}), 2)
        self.check_present(leader, replicated)


if __name__ == "__main__":
    unittest.main()
