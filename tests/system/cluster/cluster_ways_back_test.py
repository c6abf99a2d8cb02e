#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests how an operator repairs a cluster that has lost servers or a whole shard."""

import subprocess
import unittest

from harness import CLUSTER_TOOL, DEADLINE_S, wait_until
from harness.cluster import NAME, ClusterTest

NEW = 7  # index of a server that a test adds; the server's id is made from it


class ClusterWaysBackTest(ClusterTest):
    def wait_until_dead(self, server):
        key = f"bloomery/{NAME}/alive/{server.node_id}"
        wait_until(lambda: not self.etcd.control("get", key), f"the lease of {server.port} ends")

    def refused(self, *words):
        done = self.run_tool(*words)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done)
        return done.stderr

    def test_empty_directory_gets_its_place_again(self):
        leader, replica = self.start_cluster(1, 1)
        self.wait_for_replicas([leader, replica], 1)
        replica.crash()
        self.wait_until_dead(replica)
        back = self.start_node(self.etcd, NEW, port=replica.port)
        for server in (leader, back):
            server.expect_log(".*")
        wait_until(lambda: "registered under a new id" in self.tool("status"), "it has a new id")
        self.tool("add", f"127.0.0.1:{back.port}")
        self.wait_for_replicas([leader, back], 1)
        self.assertEqual(sorted(self.topology()["nodes"]), sorted([leader.node_id, back.node_id]))
        self.check_takeover(leader, back)

    def test_lost_shard_gets_an_empty_leader(self):
        lost, other = self.start_cluster(2)
        other.expect_log(".*")
        with lost.connect() as connection:
            self.assertEqual(connection.call("SET", "{06S}", "1"), b"OK")  # the key is in slot 0
        lost.crash()
        self.wait_until_dead(lost)
        empty = self.start_node(self.etcd, NEW)
        empty.expect_log(".*")
        address = f"127.0.0.1:{empty.port}"
        for words in (("failover", "s1"), ("remove", f"127.0.0.1:{lost.port}")):
            self.assertIn("`replace s1 HOST:PORT --accept-loss`", self.refused(*words))
        wait_until(lambda: "--accept-loss" in self.refused("replace", "s1", address),
                   "it has registered")  # fmt: skip
        self.tool("replace", "s1", address, "--accept-loss")
        self.wait_for_state(empty)
        self.assertTrue(self.redis_py(other).set("{06S}", "2"))
        # The topology does not contain the lost server. So if the lost server restarts, the
        # cluster will not change the data of that server.
        self.assertNotIn(lost.node_id, self.topology()["nodes"])

    def test_recover_refuses_another_cluster(self):
        """A real server sends its cluster name only as the option cluster-name."""
        (server,) = self.start_cluster(1)
        done = subprocess.run(
            [CLUSTER_TOOL, "--etcd", ",".join(self.etcd.endpoints), "--cluster", "other",
             "recover", f"127.0.0.1:{server.port}", "--yes"],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stdout), (1, ""), done)
        self.assertRegex(done.stderr, f"{server.port} .*'{NAME}'.*'other'")
        self.assertEqual(self.etcd.control("get", "--prefix", "bloomery/other/"), "")


if __name__ == "__main__":
    unittest.main()
