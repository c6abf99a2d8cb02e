#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that bloomery-cluster makes a cluster of six servers, with an etcd of three members. The
tools and clients of Redis Cluster must accept the cluster."""

import json
import subprocess
import unittest

import redis
from harness import CLUSTER_TOOL, DEADLINE_S, ServerTest, wait_until
from harness.cluster import BUSY_WARNINGS
from harness.etcd import EtcdTest

NAME = "test"
SLOTS = 16384


class ClusterCreateTest(ServerTest, EtcdTest):
    def setUp(self):
        self.etcd = self.start_etcd(members=3)
        options = [
            "--cluster-enabled", "yes", "--cluster-name", NAME,
            "--cluster-node-timeout", "2500", "--cluster-etcd", *self.etcd.endpoints,
        ]  # fmt: skip
        self.servers = [self.start_server(*options) for _ in range(6)]
        for server in self.servers:
            server.expect_log(BUSY_WARNINGS)
        self.addresses = [f"127.0.0.1:{server.port}" for server in self.servers]
        wait_until(lambda: self.registered() == len(self.servers), "the servers register")

    def registered(self):
        keys = self.etcd.control("get", "--prefix", "--keys-only", f"bloomery/{NAME}/alive/")
        return len(keys.split())

    def tool(self, *words, options=()):
        done = subprocess.run(
            [CLUSTER_TOOL, "--etcd", ",".join(self.etcd.endpoints), "--cluster", NAME,
             *options, *words],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def status(self):
        return json.loads(self.tool("status", options=["--json"]))

    def states(self):
        return [node["state"] for shard in self.status()["shards"] for node in shard["nodes"]]

    def cli(self, *words):
        return self.run_client(["redis-cli", *words])

    def test_cluster_is_made_and_used(self):
        self.tool("create", "--replicas", "1", *self.addresses)
        wait_until(lambda: self.states() == ["ok", "in sync"] * 3, "all are in sync")
        first = self.addresses[0]
        checked = self.cli("--cluster", "check", first)
        self.assertIn(f"[OK] All {SLOTS} slots covered.", checked)
        self.assertIn("3 primaries" if "primaries" in checked else "3 masters",
                      self.cli("--cluster", "info", first))  # fmt: skip
        self.assertEqual(self.cli("--cluster", "call", first, "PING").count("PONG"), 6)

        port = self.servers[0].port
        self.assertEqual(self.cli("-c", "-p", port, "BF.ADD", "visitors", "alice").strip(), "1")
        port = self.servers[1].port
        self.assertEqual(self.cli("-c", "-p", port, "BF.EXISTS", "visitors", "alice").strip(), "1")
        self.run_client(
            ["redis-benchmark", "--cluster", "-p", port, "-t", "set,get", "-n", "5000", "-q"],
        )
        self.check_python()
        self.check_planned_failover()

    def check_python(self):
        cluster = redis.RedisCluster(host="127.0.0.1", port=self.servers[2].port)
        with cluster.pipeline() as pipeline:
            for i in range(100):
                pipeline.execute_command("BF.ADD", f"filter:{i}", "item")
            self.assertEqual(pipeline.execute(), [1] * 100)
        self.assertEqual(
            [cluster.execute_command("BF.EXISTS", f"filter:{i}", "item") for i in range(100)],
            [1] * 100,
        )
        cluster.close()

    def check_planned_failover(self):
        before = self.status()["shards"][0]["nodes"]
        self.tool("failover", "s1")
        after = self.status()["shards"][0]["nodes"]
        self.assertEqual(after[0]["address"], before[1]["address"])
        wait_until(lambda: self.states() == ["ok", "in sync"] * 3, "all are in sync again")
        port = self.servers[1].port
        for i in range(100):
            answer = self.cli("-c", "-p", port, "BF.EXISTS", f"filter:{i}", "item")
            self.assertEqual(answer.strip(), "1")


if __name__ == "__main__":
    unittest.main()
