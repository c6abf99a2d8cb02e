#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests replication over TLS between our servers, and between our servers and Redis."""

import os
import tempfile
import unittest

from harness import free_port, wait_until
from harness.info import info
from harness.replication import ReplicaTest
from harness.tls_files import TlsFiles


class TlsReplicationTest(ReplicaTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory(prefix="bloomery-tls-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.files = TlsFiles(cls.folder.name)
        cls.files.make_certificate("client")
        cls.files.make_authority("other-ca")

    def start_tls(self, *more, start=None, auth="yes"):
        port = free_port()
        options = self.files.server_options(port, "--tls-replication", "yes", *more, auth=auth)
        server = (start or self.start_server)(*options)
        server.tls_port = port
        return server

    def fill(self, client, size=3_000_000):
        """Writes a string that needs many TLS records, and adds items to some filters."""
        self.assertEqual(client.call("SET", "large", os.urandom(size)), b"OK")
        for i in range(200):
            client.call("BF.ADD", f"filter:{i % 10}", f"item:{i}")

    def compare(self, leader, replica, *keys):
        self.wait_until_equal_offsets(leader, replica)
        for key in keys:
            self.assertEqual(leader.call("DUMP", key), replica.call("DUMP", key), key)

    def test_snapshot_stream_and_resync(self):
        leader_server = self.start_tls("--repl-diskless-sync-delay", 0)
        replica_server = self.start_tls()
        leader, replica = self.connect(leader_server), self.connect(replica_server)
        self.fill(leader)
        self.follow(replica, leader_server.tls_port)
        self.wait_for_link(replica)
        self.compare(leader, replica, "large", "filter:3")
        slave = info(leader)["slave0"]
        self.assertIn(f"port={replica_server.tls_port},", slave, "where it listens for others")
        # The stream after the snapshot has big and small commands, and acknowledgements.
        self.fill(leader, 5_000_000)
        self.assertEqual(leader.call("WAIT", 1, 20_000), 1)
        self.compare(leader, replica, "large", "filter:3")
        # After a cut of the link, the replica continues the stream without a full sync.
        leader.call("CLIENT", "KILL", "TYPE", "replica")
        leader.call("SET", "after", "the cut")
        # The write may reach the replica over the old link, which would prove nothing about the new
        # link. So the test waits for the partial sync before it looks for the write.
        wait_until(lambda: info(leader, "stats")["sync_partial_ok"] == "1")
        wait_until(lambda: replica.call("GET", "after") == b"the cut")
        self.assertEqual(info(leader, "stats")["sync_full"], "1")

    def test_sub_replica_and_plain_ones_beside(self):
        leader_server = self.start_tls("--repl-diskless-sync-delay", 0)
        middle_server = self.start_tls("--repl-diskless-sync-delay", 0)
        plain_server = self.start_server()
        leader = self.connect(leader_server)
        middle = self.connect(middle_server)
        plain = self.connect(plain_server)
        self.fill(leader)
        self.follow(middle, leader_server.tls_port)
        self.wait_for_link(middle)
        self.follow(plain, middle_server.port)
        self.wait_for_link(plain)
        self.assertEqual(leader.call("SET", "key", "value"), b"OK")
        wait_until(lambda: plain.call("GET", "key") == b"value")
        self.compare(leader, plain, "large", "filter:3")

    def test_a_leader_that_is_redis(self):
        leader_server = self.start_tls("--repl-diskless-sync-delay", 0, start=self.start_redis)
        leader_server.expect_log("Diskless rdb transfer|Connection with replica")
        replica_server = self.start_tls()
        self.replicate(leader_server, replica_server)

    def replicate(self, leader_server, replica_server):
        leader, replica = self.connect(leader_server), self.connect(replica_server)
        value = os.urandom(2_000_000)
        leader.call("SET", "large", value)
        self.follow(replica, leader_server.tls_port)
        self.wait_for_link(replica)
        leader.call("SET", "key", "value")
        wait_until(lambda: replica.call("GET", "key") == b"value")
        self.assertEqual(replica.call("GET", "large"), value)

    def test_a_replica_that_is_redis(self):
        leader_server = self.start_tls("--repl-diskless-sync-delay", 0)
        self.replicate(leader_server, self.start_tls(start=self.start_redis))

    def test_each_verifies_the_other(self):
        leader_server = self.start_tls("--repl-diskless-sync-delay", 0)
        replica_server = self.start_tls("--tls-ca-cert-file", self.files.path("other-ca.crt"))
        replica = self.connect(replica_server)
        self.follow(replica, leader_server.tls_port)
        replica_server.wait_for_log("certificate verify failed.*tls-replication")
        self.assertEqual(info(replica)["master_link_status"], "down")
        # CONFIG SET installs another CA and a client certificate without a restart.
        for name, value in (
            ("tls-ca-cert-file", self.files.path("ca.crt")),
            ("tls-client-cert-file", self.files.path("client.crt")),
        ):
            words = [name, value]
            if name == "tls-client-cert-file":
                words += ["tls-client-key-file", self.files.path("client.key")]
            self.assertEqual(replica.call("CONFIG", "SET", *words), b"OK")
        self.wait_for_link(replica)

    def test_a_leader_that_speaks_no_tls(self):
        leader_server = self.start_server()
        replica_server = self.start_tls()
        replica = self.connect(replica_server)
        replica.call("CONFIG", "SET", "repl-timeout", 2)
        self.follow(replica, leader_server.port)
        replica_server.wait_for_log("TLS handshake")
        self.assertEqual(replica.call("CONFIG", "SET", "tls-replication", "no"), b"OK")
        self.wait_for_link(replica)


if __name__ == "__main__":
    unittest.main()
