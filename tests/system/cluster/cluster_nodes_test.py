#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests clients of Redis Cluster with a cluster of three shards, each with a leader and a replica.
"""

import re
import unittest

import redis
from harness.cluster import SLOTS, ClusterTest
from harness.node import MODULES, SCRIPTS, node

SCRIPT = SCRIPTS / "cluster.cjs"
SHARDS = 3


class ClusterNodesTest(ClusterTest):
    def test_clients(self):
        """Runs the checks of all clients on the same cluster, because starting a cluster takes
        longer than most checks.
        """
        self.servers = self.start_cluster(SHARDS, 1)
        self.wait_for_replicas(self.servers, SHARDS)
        self.first = self.servers[0]
        self.address = f"127.0.0.1:{self.first.port}"
        for check in (
            self.check_node_clients, self.check_redis_py, self.check_reads_from_replicas,
            self.check_redis_cli, self.check_redis_benchmark,
        ):  # fmt: skip
            redis.RedisCluster(host="127.0.0.1", port=self.first.port).flushall()
            with self.subTest(check.__name__):
                check()

    def check_node(self, client, package, protocol):
        folder = MODULES / f"node_modules_{package}"
        self.assertTrue((folder / ".installed").exists(), "run scripts/install_node_packages.sh")
        self.run_client(
            [node(), SCRIPT, self.first.port, protocol, folder],
            environment={"CLUSTER_CLIENT": client, "CLUSTER_LEADERS": str(SHARDS)},
        )

    def check_node_clients(self):
        for client, package, protocol in (
            ("redis", "redis5", 2), ("redis", "redis6", 3), ("ioredis", "ioredis5", 2),
            ("ioredis", "ioredis6", 3), ("@valkey/valkey-glide", "valkey_glide", 2),
            ("@valkey/valkey-glide", "valkey_glide", 3),
        ):  # fmt: skip
            with self.subTest(client=package, protocol=protocol):
                redis.RedisCluster(host="127.0.0.1", port=self.first.port).flushall()
                self.check_node(client, package, protocol)

    def check_redis_py(self):
        cluster = self.redis_py(self.first)
        self.addCleanup(cluster.close)
        self.assertEqual(len(cluster.get_primaries()), SHARDS)
        keys = {f"key:{index}": str(index).encode() for index in range(200)}
        self.assertTrue(cluster.mset_nonatomic(keys))
        self.assertEqual(cluster.mget_nonatomic(list(keys)), list(keys.values()))
        primaries = redis.RedisCluster.PRIMARIES
        self.assertEqual(cluster.dbsize(target_nodes=primaries), len(keys))
        self.assertEqual({key.decode() for key in cluster.scan_iter()}, set(keys))
        for index in range(20):
            self.assertEqual(cluster.execute_command("BF.ADD", f"f{index}", "a"), 1)
            self.assertEqual(cluster.execute_command("BF.EXISTS", f"f{index}", "a"), 1)
        with cluster.pipeline() as pipeline:
            for key in keys:
                pipeline.get(key)
            self.assertEqual(pipeline.execute(), list(keys.values()))
        with cluster.pipeline() as pipeline:
            for index in range(100):
                pipeline.set(f"new:{index}", index)
                pipeline.execute_command("BF.ADD", f"filter:{index}", "a")
                pipeline.setbit(f"bits:{index}", 7, 1)
            self.assertEqual(pipeline.execute(), [True, 1, 0] * 100)

    def check_reads_from_replicas(self):
        cluster = self.redis_py(self.first, read_from_replicas=True)
        self.addCleanup(cluster.close)
        keys = {f"key:{index}": str(index).encode() for index in range(200)}
        self.assertTrue(cluster.mset_nonatomic(keys))
        for key in list(keys)[:20]:
            cluster.execute_command("BF.ADD", f"{{{key}}}:f", "a")
        for server in self.servers[:SHARDS]:
            # Waits until each leader's replica has the written items.
            with server.connect() as connection:
                self.assertEqual(connection.call("WAIT", 1, 5000), 1)
        gets = self.reads_of_replicas("get")
        for key, value in keys.items():
            self.assertEqual(cluster.get(key), value)
            self.assertEqual(cluster.get(key), value)
        self.assertGreater(self.reads_of_replicas("get") - gets, 150)
        with cluster.pipeline() as pipeline:
            for key in keys:
                pipeline.get(key)
            self.assertEqual(pipeline.execute(), list(keys.values()))
        # redis-py does not know that BF.EXISTS is a read command, so it sends BF.EXISTS to leaders.
        for key in list(keys)[:20]:
            self.assertEqual(cluster.execute_command("BF.EXISTS", f"{{{key}}}:f", "a"), 1)

    def reads_of_replicas(self, command):
        total = 0
        for server in self.servers[SHARDS:]:
            with server.connect() as connection:
                answer = connection.call("INFO", "commandstats").decode()
            found = re.search(rf"cmdstat_{re.escape(command)}:calls=(\d+)", answer)
            total += int(found[1]) if found else 0
        return total

    def check_redis_cli(self):
        cli = ["redis-cli", "-p", self.first.port]
        for index in range(20):
            said = self.run_client([*cli, "-c", "BF.ADD", f"f{index}", "a"])
            self.assertTrue(said.rstrip().endswith("1"), said)
        said = self.run_client([*cli, "--cluster", "check", self.address])
        self.assertIn(f"[OK] All {SLOTS} slots covered.", said)
        self.assertIn("[OK] All nodes agree about slots configuration.", said)
        self.assertIn("[OK] 20 keys in 3 masters.", said)
        self.run_client([*cli, "--cluster", "info", self.address])
        said = self.run_client([*cli, "--cluster", "call", self.address, "PING"])
        self.assertEqual(said.count("PONG"), 2 * SHARDS)

    def check_redis_benchmark(self):
        said = self.run_client(
            ["redis-benchmark", "--cluster", "-p", self.first.port, "-t", "set,get", "-n", "3000",
             "-q"], timeout_s=120,
        )  # fmt: skip
        self.assertIn("SET", said)
        self.assertIn("GET", said)


if __name__ == "__main__":
    unittest.main()
