#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests servers that announce an address other than their own, as containers with published ports
do.

Clients, replicas and bloomery-cluster must connect to the announced address."""

import json
import subprocess
import unittest

from harness import CLUSTER_TOOL, DEADLINE_S, free_port, wait_until
from harness.cluster import NAME, ClusterTest
from harness.cutting_proxy import CuttingProxy


class ClusterAnnounceTest(ClusterTest):
    def start_announced(self, index):
        """Starts a server that announces the address of a proxy to the cluster. Returns the server.
        """
        port = free_port()
        way = CuttingProxy(port)
        self.addCleanup(way.close)
        server = self.start_node(
            self.etcd, index, "--cluster-announce-ip", "127.0.0.1",
            "--cluster-announce-port", way.port,
            "--cluster-announce-hostname", f"node{index}.example", port=port,
        )  # fmt: skip
        server.expect_log(".*")
        server.way = way
        return server

    def tool(self, *words):
        done = subprocess.run(
            [CLUSTER_TOOL, "--etcd", ",".join(self.etcd.endpoints), "--cluster", NAME,
             *map(str, words)],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def nodes(self):
        status = json.loads(self.tool("--json", "status"))
        return [node for shard in status["shards"] for node in shard["nodes"]]

    def test_all_go_to_what_is_announced(self):
        self.etcd = self.start_etcd()
        servers = [self.start_announced(index) for index in range(4)]
        wait_until(
            lambda: len(self.etcd.control("get", "--prefix", "--keys-only",
                                          f"bloomery/{NAME}/alive/").split()) == 4,
            "the servers register",
        )  # fmt: skip
        self.tool("create", "--replicas", 1, *(f"127.0.0.1:{one.port}" for one in servers))
        wait_until(lambda: [n["state"] for n in self.nodes()] == ["ok", "in sync"] * 2,
                   self.nodes)  # fmt: skip
        ways = [server.way.port for server in servers]
        announced = sorted(int(node["address"].split(":")[1]) for node in self.nodes())
        self.assertEqual(announced, sorted(ways))
        # The announced addresses are those of the proxies, so the replicas have connected through
        # the proxies.
        self.assertTrue(all(server.way.count for server in servers[:2]))
        self.wait_for_replicas(servers, 2)
        cluster = self.redis_py(servers[0])
        self.addCleanup(cluster.close)
        self.assertEqual(sorted(node.port for node in cluster.get_nodes()), sorted(ways))
        for index in range(20):
            cluster.set(f"k{index}", index)
            self.assertEqual(cluster.get(f"k{index}"), str(index).encode())
        with servers[0].connect() as connection:
            reply = connection.call("CONFIG", "SET", "cluster-node-timeout", "20000")
            # CONFIG SET of cluster-node-timeout must fail, because this timeout determines how long
            # a leader may acknowledge writes.
            self.assertIn("can't set immutable config", str(reply))
            connection.call("HELLO", "3")
            slots = connection.call("CLUSTER", "SLOTS")
            self.assertEqual(slots[0][2][3], {b"hostname": b"node0.example"})
            self.check_offsets(connection, servers)

    def test_an_address_may_change(self):
        servers = self.start_cluster(1, 1)
        self.wait_for_replicas(servers, 1)
        leader, replica = servers
        replica.expect_log("connection")
        way = CuttingProxy(leader.port)
        self.addCleanup(way.close)
        with leader.connect() as connection, replica.connect() as other:
            connection.call("CONFIG", "SET", "cluster-announce-hostname", "a.example",
                            "cluster-announce-port", way.port)  # fmt: skip
            wait_until(
                lambda: b"MOVED 15495 127.0.0.1:%d" % way.port
                == other.call("GET", "a").text.encode(), lambda: other.call("GET", "a"),
            )  # fmt: skip
            announced = b"127.0.0.1:%d@%d,a.example myself" % (way.port, way.port + 10000)
            wait_until(lambda: announced in connection.call("CLUSTER", "NODES"),
                       lambda: connection.call("CLUSTER", "NODES"))  # fmt: skip
            # The replica now uses the new address, too.
            wait_until(lambda: way.count > 0, "the replica comes")
            self.assertEqual(connection.call("SET", "a", "1"), b"OK")
            self.assertEqual(connection.call("WAIT", 1, 10000), 1)
        self.wait_for_replicas(servers, 1)

    def check_offsets(self, connection, servers):
        """Waits until CLUSTER SHARDS of the leader shows the same offset for the leader and for its
        replica. A replica reports its offset once a second.
        """
        def offsets():
            shards = connection.call("CLUSTER", "SHARDS")
            nodes = {node[b"id"].decode(): node for shard in shards for node in shard[b"nodes"]}
            return [nodes[servers[i].node_id][b"replication-offset"] for i in (0, 2)]

        wait_until(lambda: offsets()[0] == offsets()[1] > 0, offsets)


if __name__ == "__main__":
    unittest.main()
