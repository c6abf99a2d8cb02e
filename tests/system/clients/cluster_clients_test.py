#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests clients of Redis Cluster with one server that emulates a whole cluster."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import redis
from harness import DEADLINE_S, SERVER, ServerTest, free_port
from harness.node import MODULES, SCRIPTS, node
from harness.tls_files import TlsFiles

SCRIPT = SCRIPTS / "cluster.cjs"
SLOTS = 16384


class ClusterClientsTest(ServerTest):
    def setUp(self):
        self.server = self.start_server("--cluster-enabled", "emulated")

    def cli(self, *words):
        return self.run_client(["redis-cli", "-p", self.server.port, *words])

    # Tests with Node.js clients of Redis Cluster.

    def check_node(self, client, package, protocol):
        folder = MODULES / f"node_modules_{package}"
        self.assertTrue((folder / ".installed").exists(), "run scripts/install_node_packages.sh")
        self.run_client(
            [node(), SCRIPT, self.server.port, protocol, folder],
            environment={"CLUSTER_CLIENT": client},
        )

    def test_node_redis_5(self):
        self.check_node("redis", "redis5", 2)

    def test_node_redis_6(self):
        self.check_node("redis", "redis6", 3)

    def test_ioredis_5(self):
        self.check_node("ioredis", "ioredis5", 2)

    def test_ioredis_6(self):
        self.check_node("ioredis", "ioredis6", 3)

    def test_valkey_glide_resp2(self):
        self.check_node("@valkey/valkey-glide", "valkey_glide", 2)

    def test_valkey_glide_resp3(self):
        self.check_node("@valkey/valkey-glide", "valkey_glide", 3)

    # Tests with Python clients of Redis Cluster.

    def test_redis_py(self):
        cluster = redis.RedisCluster(host="127.0.0.1", port=self.server.port)
        self.addCleanup(cluster.close)
        self.assertEqual(len(cluster.get_primaries()), 1)
        keys = {f"key:{index}": str(index).encode() for index in range(200)}
        self.assertTrue(cluster.mset_nonatomic(keys))
        self.assertEqual(cluster.mget_nonatomic(list(keys)), list(keys.values()))
        self.assertEqual(cluster.dbsize(), len(keys))
        self.assertEqual({key.decode() for key in cluster.scan_iter()}, set(keys))
        self.assertEqual(cluster.execute_command("BF.ADD", "f", "a"), 1)
        self.assertEqual(cluster.execute_command("BF.EXISTS", "f", "a"), 1)
        with cluster.pipeline() as pipeline:
            for key in keys:
                pipeline.get(key)
            self.assertEqual(pipeline.execute(), list(keys.values()))
        slot = cluster.cluster_keyslot("key:1")
        self.assertEqual(cluster.cluster_countkeysinslot(slot), 1)
        self.assertEqual(cluster.cluster_get_keys_in_slot(slot, 10), ["key:1"])
        with self.assertRaises(redis.exceptions.RedisClusterException):
            cluster.mset({"a": 1, "b": 2})

    def test_redis_py_reads_from_replicas(self):
        # redis-py first sends READONLY to every node.
        cluster = redis.RedisCluster(
            host="127.0.0.1", port=self.server.port, read_from_replicas=True
        )
        self.addCleanup(cluster.close)
        cluster.set("a", "1")
        self.assertEqual(cluster.get("a"), b"1")

    # Tests with redis-cli and redis-benchmark in cluster mode.

    def test_redis_cli_follows_the_cluster(self):
        self.assertEqual(self.cli("-c", "SET", "foo", "1").strip(), "OK")
        self.assertEqual(self.cli("-c", "GET", "foo").strip(), "1")
        self.assertIn("CROSSSLOT", self.cli("-c", "MGET", "foo", "bar"))

    def test_redis_cli_finds_the_cluster_sound(self):
        self.cli("SET", "foo", "1")
        said = self.cli("--cluster", "check", f"127.0.0.1:{self.server.port}")
        self.assertIn(f"[OK] All {SLOTS} slots covered.", said)
        self.assertIn("[OK] All nodes agree about slots configuration.", said)
        self.assertIn("[OK] 1 keys in 1 masters.", said)
        said = self.cli("--cluster", "call", f"127.0.0.1:{self.server.port}", "PING")
        self.assertRegex(said, r"127\.0\.0\.1:\d+: PONG")

    def make_directory(self):
        self.directory = tempfile.mkdtemp(prefix="bloomery-test-")
        self.addCleanup(shutil.rmtree, self.directory)
        return self.directory

    def start_in_vain(self, *options):
        """Starts a server that must end by itself with an error, and returns its output."""
        done = subprocess.run(
            [SERVER, "--port", str(free_port()), "--dir", self.directory, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        self.assertEqual(done.returncode, 1, done.stdout)
        return done.stdout

    # Tests of announced addresses, and of options with which the server does not start.

    def test_announces_the_address_that_the_client_reached(self):
        with self.server.connect() as client:
            ((_, _, (host, port, node_id, _)),) = client.call("CLUSTER", "SLOTS")
        self.assertEqual((host, port), (b"127.0.0.1", self.server.port))
        self.assertRegex(node_id, re.compile(rb"^[0-9a-f]{40}$"))

    def test_clients_that_speak_tls_are_sent_to_its_port(self):
        folder = tempfile.TemporaryDirectory(prefix="bloomery-tls-")
        self.addCleanup(folder.cleanup)
        files, port = TlsFiles(folder.name), free_port()
        options = files.server_options(port, "--cluster-enabled", "emulated")
        server = self.start_server(*options)

        def nodes_line(*words):
            return self.run_client(["redis-cli", "-c", *words, "CLUSTER", "NODES"])

        self.assertIn(f":{port}@", nodes_line("-p", port, *files.client_options()))
        self.assertIn(f":{server.port}@", nodes_line("-p", server.port))
        with server.connect() as client:
            client.call("CONFIG", "SET", "cluster-announce-tls-port", "7443")
        self.assertIn(":7443@17443", nodes_line("-p", port, *files.client_options()))
        self.assertIn(f":{server.port}@", nodes_line("-p", server.port))

    def test_keys_of_other_databases_end_the_start(self):
        plain = self.start_server()
        with plain.connect() as client:
            client.call("SELECT", "3")
            client.call("SET", "a", "1")
            client.call("SAVE")
        shutil.copy(pathlib.Path(plain.directory) / "dump.rdb", self.make_directory())
        said = self.start_in_vain("--cluster-enabled", "emulated", "--appendonly", "no")
        self.assertIn("different than DB 0", said)

    def test_replica_does_not_start_as_a_cluster(self):
        self.make_directory()
        said = self.start_in_vain("--cluster-enabled", "emulated", "--replicaof", "127.0.0.1", "1")
        self.assertIn("replicaof directive", said)


if __name__ == "__main__":
    unittest.main()
