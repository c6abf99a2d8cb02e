#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests the dashboard of leaders, replicas and nodes of a cluster in a headless Chromium."""

import unittest

from harness import free_port
from harness.browser import BrowserTest
from harness.cluster import ClusterTest


class DashboardReplicationTest(BrowserTest):
    def test_a_leader_shows_a_late_replica(self):
        # By default the leader drops the suspended replica after 60 s.
        leader = self.start_http_server("--repl-timeout", "600")
        replica = self.start_server("--replicaof", f"127.0.0.1 {leader.port}")

        def delay():
            self.addCleanup(replica.resume)
            replica.suspend()
            with leader.connect() as client:
                client.call("SET", "large", "x" * (2 << 20))

        self.browse_with({"in step": delay, "late": replica.resume}, "leader", leader)

    def test_a_replica_shows_its_leader(self):
        leader = self.start_server()
        replica = self.start_http_server("--replicaof", f"127.0.0.1 {leader.port}")
        replica.expect_log(".*")  # the replica warns that it cannot reach its leader
        self.browse_with({"in step": leader.crash}, "replica", replica)


class DashboardClusterTest(BrowserTest, ClusterTest):
    def test_a_node_shows_its_cluster(self):
        """The dashboard of a node shows that the second shard of the cluster loses its leader."""
        self.etcd = self.start_etcd(1)
        http_port = free_port()
        servers = [self.start_node(self.etcd, 0, "--http-port", http_port)]
        servers += [self.start_node(self.etcd, index) for index in (1, 2, 3)]
        servers[0].http_port = http_port
        self.put_topology(servers, 2)
        for server in servers:
            server.expect_log(".*")  # each node warns that other nodes have ended
            self.wait_for_state(server)
        self.wait_for_replicas(servers, 2)
        addresses = [f"127.0.0.1:{server.port}" for server in servers]
        self.browse_with(
            {"whole": servers[1].crash}, "cluster", servers[0], addresses=addresses,
            successor=addresses[3],
        )  # fmt: skip


if __name__ == "__main__":
    unittest.main()
