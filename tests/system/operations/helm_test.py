# SPDX-License-Identifier: MIT
"""Tests configuration files as valkey-helm, the Helm chart of Valkey, writes them: for a leader and
a replica with users, and for TLS.

Source: init_config.yaml, a template of valkey-helm.
"""

import hashlib
import pathlib
import tempfile
import unittest

from harness import free_port, wait_until
from harness.tls import TlsTest


class HelmTest(TlsTest):
    """A server must start with each configuration file that the init container of valkey-helm
    writes.
    """

    ACL = "user default on #{} ~* &* +@all\nuser replication on #{} +psync +replconf +ping\n"

    def config(self, *lines):
        folder = tempfile.TemporaryDirectory(prefix="bloomery-helm-")
        self.addCleanup(folder.cleanup)
        place = pathlib.Path(folder.name)
        digests = [hashlib.sha256(word).hexdigest() for word in (b"secret", b"repl-secret")]
        (place / "users.acl").write_text(self.ACL.format(*digests), encoding="ascii")
        (place / "data").mkdir()
        base = [
            "protected-mode no", "bind * -::*", f"dir {place}/data", f"aclfile {place}/users.acl"
        ]  # fmt: skip
        path = place / "valkey.conf"
        path.write_text("\n".join([*base, *lines]) + "\n", encoding="ascii")
        return path

    def login(self, server):
        client = server.connect()
        self.addCleanup(client.close)
        self.assertEqual(client.call("AUTH", "secret"), b"OK")
        return client

    def test_a_leader_and_a_replica(self):
        leader = self.start_server(config_file=self.config(
            "port 6379", "", "# Minimum replicas for write operations",
            "min-replicas-to-write 1", "min-replicas-max-lag 10",
        ))  # fmt: skip
        replica = self.start_server(config_file=self.config(
            "port 6379", "", "# Replica Configuration", f"replicaof 127.0.0.1 {leader.port}",
            "replica-announce-ip 127.0.0.1", "", "# Diskless replication",
            "repl-diskless-sync yes", "repl-diskless-sync-delay 5", "", "# Master authentication",
            "masterauth repl-secret", "masteruser replication",
        ))  # fmt: skip
        clients = [self.login(server) for server in (leader, replica)]
        wait_until(
            lambda: b"master_link_status:up" in clients[1].call("INFO", "replication"),
            "the replica follows",
        )  # fmt: skip
        wait_until(lambda: clients[0].call("BF.ADD", "f", "x") in (0, 1), "an add is taken")
        wait_until(lambda: clients[1].call("BF.EXISTS", "f", "x") == 1, "the replica has it")

    def test_its_directives_for_tls(self):
        self.tls_port = free_port()
        folder = self.folder.name
        path = self.config(
            f"tls-cert-file {folder}/server.crt", f"tls-key-file {folder}/server.key",
            f"tls-ca-cert-file {folder}/ca.crt", "tls-auth-clients no", "port 0",
            f"tls-port {self.tls_port}", "tls-replication yes",
        )  # fmt: skip
        self.start_server(config_file=path)
        client = self.connect_tls()
        self.assertEqual(client.call("AUTH", "secret"), b"OK")


if __name__ == "__main__":
    unittest.main()
