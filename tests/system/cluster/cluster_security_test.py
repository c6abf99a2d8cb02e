#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests a cluster in which every connection is encrypted and authenticated.

etcd and the servers accept only TLS connections and require users with passwords."""

import logging
import shutil
import subprocess
import tempfile
import threading
import unittest

import redis
from harness import CLUSTER_TOOL, DEADLINE_S, free_port, let_time_pass, wait_until
from harness.cluster import NAME, ClusterTest
from harness.tls import TlsConnection
from harness.tls_files import TlsFiles

PASSWORD = "secret of etcd"
NODE_PASSWORD = "secret of the servers"
# ACL rules for the users of bloomery-cluster and of the nodes, as docs/cluster.md recommends them.
TOOL_RIGHTS = "-@all +info +cluster +dbsize +config|get +psync +replconf"
NODE_RIGHTS = "-@all +psync +replconf +ping +clusterx"
WRITES = 200
KEY = "b"
SLOT_OF_KEY = 3300


class ClusterSecurityTest(ClusterTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="bloomery-tls-")
        self.addCleanup(folder.cleanup)
        self.tls = TlsFiles(folder.name)
        self.tls.make_certificate("client")
        logging.disable()  # otherwise redis-py logs each redirection
        self.addCleanup(logging.disable, logging.NOTSET)

    def write_file(self, name, text):
        path = self.tls.folder / name
        path.write_text(text + "\n", encoding="ascii")
        return path

    def start_servers(self, etcd, directories, *more, first=0):
        """Starts a server in each directory; None stands for a temporary directory."""
        servers = []
        for index, directory in enumerate(directories, first):
            port = free_port()
            options = [
                "--requirepass", "x y", "--tls-replication", "yes",
                "--masteruser", "node", "--masterauth", NODE_PASSWORD,
                "--user", "node", "on", f">{NODE_PASSWORD}", *NODE_RIGHTS.split(),
                "--user", "tool", "on", f">{NODE_PASSWORD}", *TOOL_RIGHTS.split(),
                "--user", "app", "on", f">{NODE_PASSWORD}", "~*", "+@all",
                "--cluster-etcd-user", "bloomery", "--cluster-etcd-password", PASSWORD,
                "--cluster-etcd-ca-file", self.tls.path("ca.crt"),
                *self.tls.server_options(port, auth="yes"), *more,
            ]  # fmt: skip
            server = self.start_node(etcd, index, *options, port=0, directory=directory)
            server.port = port
            server.expect_log(".*")
            servers.append(server)
        self.wait_until_registered(servers)
        return servers

    def wait_until_registered(self, servers):
        prefix = f"bloomery/{NAME}/alive/"

        def registered():
            text = self.etcd.control("get", "--prefix", "--keys-only", prefix)
            return len(text.split()) == len(servers)

        wait_until(registered, "the servers register")

    def tool(self, *words):
        done = subprocess.run(
            [CLUSTER_TOOL, "--etcd", ",".join(self.etcd.endpoints), "--cluster", NAME,
             "--user", "bloomery", "--password-file", self.write_file("etcd", PASSWORD),
             "--cacert", self.tls.path("ca.crt"),
             "--node-user", "tool",
             "--node-password-file", self.write_file("node", NODE_PASSWORD),
             "--node-tls", "--node-cacert", self.tls.path("ca.crt"),
             "--node-cert", self.tls.path("client.crt"), "--node-key", self.tls.path("client.key"),
             *map(str, words)],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def start_secured_cluster(self, count, *options):
        """Starts a cluster of `count` servers. Each shard has a leader and a replica."""
        self.etcd = self.start_etcd(tls=self.tls)
        self.etcd.enable_auth(PASSWORD)
        servers = self.start_servers(self.etcd, [None] * count, *options)
        self.tool("create", "--replicas", 1, *(f"127.0.0.1:{server.port}" for server in servers))
        wait_until(lambda: self.states() == ["ok", "in sync"] * (count // 2), self.states)
        return servers

    def connect_as_app(self, server):
        context = self.tls.client_context(certificate="client")
        connection = TlsConnection(server.port, context)
        self.addCleanup(connection.close)
        self.assertEqual(connection.call("AUTH", "app", NODE_PASSWORD), b"OK")
        return connection

    def test_etcd_may_require_a_certificate(self):
        self.etcd = self.start_etcd(tls=self.tls, client_auth=True)
        ca, cert, key = (self.tls.path(name) for name in ("ca.crt", "client.crt", "client.key"))
        server = self.start_node(
            self.etcd, 0, "--cluster-etcd-ca-file", ca, "--cluster-etcd-cert-file", cert,
            "--cluster-etcd-key-file", key,
        )  # fmt: skip
        prefix = f"bloomery/{NAME}/alive/"
        wait_until(lambda: self.etcd.control("get", "--prefix", prefix), "the server registers")
        done = self.run_tool("--cacert", ca, "--cert", cert, "--key", key,
                             "create", f"127.0.0.1:{server.port}")  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertNotEqual(self.run_tool("--cacert", ca, "status").returncode, 0)

    def test_everything_is_encrypted_and_authenticated(self):
        servers = self.start_secured_cluster(4)
        cluster = redis.RedisCluster(
            host="127.0.0.1", port=servers[0].port, username="app", password=NODE_PASSWORD,
            ssl=True, ssl_ca_certs=self.tls.path("ca.crt"),
            ssl_certfile=self.tls.path("client.crt"), ssl_keyfile=self.tls.path("client.key"),
        )  # fmt: skip
        self.addCleanup(cluster.close)
        for index in range(50):
            self.assertEqual(cluster.execute_command("BF.ADD", f"f{index}", "a"), 1)
        self.tool("failover", "s1")
        wait_until(lambda: self.states() == ["ok", "in sync"] * 2, self.states)
        for index in range(50):
            self.assertEqual(cluster.execute_command("BF.EXISTS", f"f{index}", "a"), 1)
        backup = self.tls.folder / "backup"
        self.assertIn("shard s2: ", self.tool("backup", backup))
        self.assertTrue((backup / "backup.json").exists())
        # The ACL log is empty, so the users of the nodes and of bloomery-cluster may run all
        # commands that they need.
        for node in cluster.get_nodes():
            self.assertEqual(cluster.acl_log(target_nodes=node), [])
        self.check_host_names(servers)

    def check_host_names(self, servers):
        """On TLS connections, MOVED and CLUSTER SLOTS name the host name and the TLS port."""
        connections = [self.connect_as_app(server) for server in servers]
        for connection in connections:
            connection.call("CONFIG", "SET", "cluster-announce-hostname", "localhost",
                            "cluster-preferred-endpoint-type", "hostname")  # fmt: skip

        def target():
            slots = connections[1].call("CLUSTER", "SLOTS")
            return next(row[2][:2] for row in slots if row[0] <= SLOT_OF_KEY <= row[1])

        def moved():
            return {str(connection.call("GET", KEY)) for connection in connections} - {"None"}

        wait_until(lambda: target()[0] == b"localhost", "the name is known")
        wanted = f"MOVED {SLOT_OF_KEY} localhost:{target()[1]}"
        # Each server learns the name from its own watch of etcd.
        wait_until(lambda: moved() == {f"ErrorReply({wanted!r})"}, lambda: f"{wanted} in {moved()}")
        self.assertIn(target()[1], [server.port for server in servers])

    def test_backup_is_restored_with_users_and_tls(self):
        """BF.ADD is renamed in the cluster that is backed up and in the restored cluster."""
        renamed = ("--rename-command", "BF.ADD", "ADD")
        servers = self.start_secured_cluster(2, *renamed)
        writer = self.connect_as_app(servers[0])
        # The error rate is so low that no new item is a false positive, so each ADD returns 1.
        self.assertEqual(writer.call("BF.RESERVE", KEY, "0.000001", WRITES), b"OK")
        self.assertEqual([writer.call("ADD", KEY, i) for i in range(WRITES)], [1] * WRITES)
        backup = self.tls.folder / "backup"
        self.assertIn("shard s1: 1 keys", self.tool("backup", backup))
        for server in servers:
            self.assertEqual(server.stop(), [])
        self.etcd.control("del", "--prefix", f"bloomery/{NAME}/")
        directory = self.tls.folder / "restored"
        directory.mkdir()
        shutil.copy(backup / "s1.rdb", directory / "dump.rdb")
        restored = self.start_servers(self.etcd, [directory, None], *renamed, first=len(servers))
        self.tool("restore", backup, *(f"127.0.0.1:{server.port}" for server in restored))
        wait_until(lambda: self.states() == ["ok", "in sync"], self.states)
        for server in restored:
            reader = self.connect_as_app(server)
            self.assertEqual(reader.call("READONLY"), b"OK")
            items = map(str, range(WRITES))
            self.assertEqual(reader.call("BF.MEXISTS", KEY, *items), [1] * WRITES)
            self.assertEqual(reader.call("ACL", "LOG"), [])
        self.assertEqual(self.connect_as_app(restored[0]).call("ADD", KEY, "new"), 1)

    def test_writes_wait_for_replicas_by_tls(self):
        """With `cluster-write-acks insync`, acknowledgements of replicas also arrive over encrypted
        connections."""
        leader, replica = self.start_secured_cluster(
            2, "--appendonly", "yes", "--cluster-write-acks", "insync"
        )
        writer, reader = self.connect_as_app(leader), self.connect_as_app(replica)
        self.assertEqual(reader.call("READONLY"), b"OK")
        for number in range(WRITES):
            self.assertEqual(writer.call("SET", KEY, number), b"OK")
            self.assertEqual(reader.call("GET", KEY), str(number).encode())
        replies = []
        replica.suspend()
        thread = threading.Thread(target=lambda: replies.append(writer.call("SET", KEY, "held")))
        thread.start()
        let_time_pass(0.5, "a reply that does not wait would have come")
        self.assertEqual(replies, [])
        replica.resume()
        thread.join(DEADLINE_S)
        self.assertEqual(replies, [b"OK"])
        leader.crash()
        wait_until(lambda: reader.call("ROLE")[0] == b"master", "the replica takes over")
        self.assertEqual(reader.call("GET", KEY), b"held")
        wait_until(lambda: reader.call("SET", KEY, "next") == b"OK", "the new leader takes writes")


if __name__ == "__main__":
    unittest.main()
