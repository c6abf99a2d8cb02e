#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests of the JSON document in etcd that holds the cluster's topology. JSON members that a newer
version has added must be kept. Servers must refuse a document whose slots differ from the record of
slots in etcd. Further tests announce addresses, and restore a backup.
"""

import json
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import DEADLINE_S, SERVER, free_port, wait_until
from harness.cluster import NAME, TOPOLOGY, ClusterTest
from harness.info import parse_info
from harness.resp import ErrorReply

RECORD = f"bloomery/{NAME}/slots"
ITEMS = 300


class ClusterDocumentTest(ClusterTest):
    def info(self, server):
        with server.connect() as connection:
            return parse_info(connection.call("CLUSTER", "INFO"))

    def change(self, edit):
        document = self.topology()
        edit(document)
        self.etcd.control("put", TOPOLOGY, json.dumps(document))

    def wait_for_document(self, servers):
        """Waits until each server knows the topology document that is in etcd now."""
        stored = json.loads(self.etcd.control("get", "-w", "json", TOPOLOGY))["kvs"][0]
        for server in servers:
            wait_until(
                lambda one=server: int(self.info(one)["cluster_current_epoch"])
                >= stored["mod_revision"],
                f"{server.port} knows the document",
            )  # fmt: skip

    def status(self):
        return json.loads(self.tool("--json", "status"))

    def end(self, server):
        """Ends a server with SIGTERM, and keeps its directory."""
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait_for_exit(), 0)

    # Tests of JSON members that a newer version added to the topology document.

    def test_unknown_members_survive_a_failover(self):
        servers = self.start_cluster(1, 1, "--appendonly", "yes")
        self.wait_for_replicas(servers, 1)

        def add(document):
            document["future"] = {"a": [1]}
            document["shards"]["s1"]["weight"] = 3
            document["nodes"][servers[0].node_id]["zone"] = "z1"

        self.change(add)
        self.wait_for_document(servers)
        self.tool("failover", "s1")
        self.wait_for_replicas(servers, 1)
        document = self.topology()
        self.assertEqual(document["shards"]["s1"]["leader"], servers[1].node_id)
        self.assertEqual(document["future"], {"a": [1]})
        self.assertEqual(document["shards"]["s1"]["weight"], 3)
        self.assertEqual(document["nodes"][servers[0].node_id]["zone"], "z1")
        for server in servers:
            self.assertEqual(self.info(server)["cluster_topology"], "ok")

    # Tests of the slots in the topology document.

    def test_slots_without_a_record_are_refused(self):
        servers = self.start_cluster(2)
        good = self.topology()

        def move(document):
            document["shards"]["s1"]["slots"] = "0-8190"
            document["shards"]["s2"]["slots"] = "8191-16383"

        for server in servers:
            server.expect_log("Cluster: .*topology.* refused")
        self.change(move)
        for server in servers:
            server.wait_for_log("topology.* refused.* slots .*without a record")
            wait_until(lambda one=server: self.info(one)["cluster_topology"] == "invalid",
                       "the fault is shown")  # fmt: skip
        with servers[0].connect() as connection:
            slots = connection.call("CLUSTER", "SLOTS")
            self.assertEqual(slots[0][:2], [0, 8191])
        self.tool("recover", f"127.0.0.1:{servers[0].port}", "--yes")
        for server in servers:
            wait_until(lambda one=server: self.info(one)["cluster_topology"] == "ok", "repaired")
        self.assertEqual(self.topology()["shards"]["s1"]["slots"], good["shards"]["s1"]["slots"])
        # `recover` has written the record of slots to etcd. So the tool refuses a topology with
        # other slots than the record.
        self.assertTrue(self.etcd.control("get", RECORD))
        self.change(move)
        refused = self.run_tool("status")
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, "slots .*without a record")
        self.assertIn("`recover`", refused.stderr)

    # Tests of the cluster's name and of announced addresses.

    def test_wrong_cluster_name_ends_the_start(self):
        (server,) = self.start_cluster(1)
        self.end(server)
        started = subprocess.run(
            [SERVER, *server.command[1:], "--cluster-name", "other"],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        self.assertEqual(started.returncode, 1, started)
        self.assertRegex(started.stdout + started.stderr,
                         f"belongs .*cluster '{NAME}'.* cluster-name .*'other'")  # fmt: skip

    def test_changed_port_is_announced(self):
        servers = self.start_cluster(1, 1, "--appendonly", "yes")
        self.wait_for_replicas(servers, 1)
        leader, replica = servers
        leader.expect_log(".*")

        def keeps_port():
            text = pathlib.Path(replica.directory, "cluster.json").read_text(encoding="utf-8")
            return json.loads(text).get("listening", {}).get("port") == replica.port

        wait_until(keeps_port, "the port is kept")
        self.end(replica)
        again = self.start_node(self.etcd, 1, "--appendonly", "yes", directory=replica.directory,
                                port=free_port())  # fmt: skip
        again.expect_log(".*")
        wait_until(lambda: self.topology()["nodes"][again.node_id]["port"] == again.port,
                   "the new port is announced")  # fmt: skip
        self.wait_for_replicas([leader, again], 1)
        with leader.connect() as connection:
            connection.call("CONFIG", "SET", "port", moved := free_port())
        leader.port = moved
        wait_until(lambda: self.topology()["nodes"][leader.node_id]["port"] == moved,
                   "the leader's new port is announced")  # fmt: skip
        self.wait_for_replicas([leader, again], 1)

    def test_clients_are_sent_to_host_names(self):
        servers = self.start_cluster(2)
        with servers[0].connect() as one, servers[1].connect() as two:
            for connection, hostname in ((one, "a.example"), (two, "")):
                connection.call("CONFIG", "SET", "cluster-announce-hostname", hostname,
                                "cluster-preferred-endpoint-type", "hostname")  # fmt: skip
            # Each server learns the name from its own watch of etcd.
            for connection in (one, two):
                wait_until(
                    lambda asked=connection: asked.call("CLUSTER", "SLOTS")[0][2][0]
                    == b"a.example",
                    "the name is known",
                )  # fmt: skip
            own, other = one.call("CLUSTER", "SLOTS")
            self.assertEqual(own[2][0], b"a.example")
            self.assertEqual(own[2][3], [b"ip", b"127.0.0.1"])
            self.assertEqual(other[2][0], b"?")
            shards = str(one.call("CLUSTER", "SHARDS"))
            self.assertIn("b'endpoint', b'a.example'", shards)
            self.assertIn("b'endpoint', b'?'", shards)
            moved = two.call("SET", "b", "1")  # The key b is in slot 3300.
            self.assertIsInstance(moved, ErrorReply)
            self.assertEqual(moved.text, f"MOVED 3300 a.example:{servers[0].port}")
            two.call("CONFIG", "SET", "cluster-preferred-endpoint-type", "unknown-endpoint")
            self.assertIsNone(two.call("CLUSTER", "SLOTS")[0][2][0])
            self.assertEqual(two.call("SET", "b", "1").text, f"MOVED 3300 :{servers[0].port}")

    # Tests of restores from a backup.

    def test_backup_is_restored(self):
        servers = self.start_cluster(2, 1, "--appendonly", "yes")
        self.wait_for_replicas(servers, 2)
        cluster = self.redis_py(servers[0])
        for number in range(ITEMS):
            cluster.execute_command("BF.ADD", f"f{number % 40}", number)
            cluster.set(f"k{number}", number)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-backup-"))
        self.addCleanup(shutil.rmtree, folder)
        target = folder / "first"
        said = self.tool("backup", target)
        self.assertRegex(said, r"shard s1: \d+ keys, \d+ bytes, offset \d+ of 127\.0\.0\.1:\d+")
        saved = json.loads((target / "backup.json").read_text(encoding="utf-8"))
        self.assertEqual(saved["topology"]["nodes"], self.topology()["nodes"])
        self.assertEqual(sum(shard["keys"] for shard in saved["shards"].values()), ITEMS + 40)
        for index, shard in enumerate(("s1", "s2")):
            with servers[index].connect() as connection:
                info = connection.call("INFO", "replication").decode()
            self.assertIn(f"master_replid:{saved['shards'][shard]['replication_id']}", info)
            self.assertGreater(saved["shards"][shard]["offset"], 0)
        self.assertRegex(self.run_tool("backup", target).stderr, "holds a backup")
        cluster.flushall(target_nodes=cluster.PRIMARIES)
        cluster.close()
        self.restore(servers, target)

    def restore(self, former, target):
        for server in former:
            server.expect_log(".*")
            self.assertEqual(server.stop(), [])
        self.etcd.control("del", "--prefix", f"bloomery/{NAME}/")
        servers = []
        for index, shard in enumerate(("s1", "s2", None)):
            directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-test-"))
            self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
            if shard is not None:
                shutil.copy(target / f"{shard}.rdb", directory / "dump.rdb")
            servers.append(self.start_node(self.etcd, 10 + index, "--appendonly", "no",
                                           directory=directory))  # fmt: skip
        addresses = [f"127.0.0.1:{server.port}" for server in servers]
        alive = f"bloomery/{NAME}/alive/"
        wait_until(lambda: len(self.etcd.control("get", "--prefix", "--keys-only", alive).split())
                   == len(servers), "the servers register")  # fmt: skip
        swapped = self.run_tool("restore", target, addresses[1], addresses[0])
        self.assertEqual(swapped.returncode, 1)
        self.assertRegex(swapped.stderr, "keys .*not belong to shard s1")
        empty = self.run_tool("restore", target, addresses[2], addresses[1])
        self.assertRegex(empty.stderr, "empty.* snapshot of shard s1")
        self.assertIn("2 shards and 3 nodes", self.tool("restore", target, *addresses))
        wait_until(lambda: [len(shard["insync"]) for shard in self.topology()["shards"].values()]
                   == [2, 1], "the replica is in sync")  # fmt: skip
        for server in servers:
            self.wait_for_state(server)
        cluster = self.redis_py(servers[0])
        self.addCleanup(cluster.close)
        for number in range(ITEMS):
            self.assertEqual(cluster.execute_command("BF.EXISTS", f"f{number % 40}", number), 1)
            self.assertEqual(cluster.get(f"k{number}"), str(number).encode())
        self.assertEqual(cluster.execute_command("BF.ADD", "f0", "new"), 1)
        with servers[0].connect() as connection:
            self.assertEqual(connection.call("CONFIG", "SET", "appendonly", "yes"), b"OK")


if __name__ == "__main__":
    unittest.main()
