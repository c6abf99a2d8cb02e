#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests faults in which etcd still runs: its connections stall, or its data are wrong. The data
may be restored from a backup, empty, or without the topology.
"""

import contextlib
import json
import pathlib
import unittest

from harness import wait_until
from harness.cluster import TOPOLOGY, ClusterTest
from harness.cutting_proxy import CuttingProxy
from harness.info import parse_info
from harness.preloads import process_faults

PASSWORD = "secret"
LOST = "Cluster: etcd has|Cluster: etcd was restored|another etcd|the watch of etcd"


class EtcdBehindProxy:
    """A proxy between one server and etcd, whose connections a test can cut or stall."""

    def __init__(self, etcd):
        self.proxy = CuttingProxy(etcd.members[0].client_port)
        self.endpoints = [f"http://127.0.0.1:{self.proxy.port}"]


class EtcdByName:
    """A member of etcd whose endpoint has a host name."""

    def __init__(self, etcd):
        self.endpoints = [f"http://localhost:{etcd.members[0].client_port}"]


class ClusterEtcdTest(ClusterTest):
    def start_pair(self):
        """Starts a leader and its replica, and waits until they are in sync. Their logs may report
        faults of etcd.
        """
        servers = self.start_cluster(1, 1, "--appendonly", "yes")
        for server in servers:
            server.expect_log(LOST)
            server.expect_log("Cluster: |onnection|eader")
        self.wait_for_replicas(servers, 1)
        return servers

    def info(self, server):
        with server.connect() as connection:
            return parse_info(connection.call("CLUSTER", "INFO"))

    def wait_for_topology(self, servers, state):
        for server in servers:
            wait_until(lambda one=server: self.info(one).get("cluster_topology") == state,
                       lambda one=server: f"{one.port} says {state}: {self.info(one)}")  # fmt: skip

    def wait_for_etcd(self, server, state):
        wait_until(
            lambda: self.info(server)["cluster_etcd"] == state,
            lambda: f"etcd is {state}: {self.info(server)}",
        )

    def start_user(self, index, password):
        """Starts a server that has a user in etcd."""
        server = self.start_node(
            self.etcd, index, "--cluster-etcd-user", "bloomery", "--cluster-etcd-password", password
        )
        server.expect_log("Cluster: etcd refuses")
        return server

    def test_refusals_of_etcd_are_logged(self):
        self.etcd = self.start_etcd()
        self.etcd.enable_auth(PASSWORD)
        self.start_user(0, "wrong").wait_for_log(
            "etcd refuses .*authentication failed.*; correct cluster-etcd-user"
        )
        server = self.start_user(1, PASSWORD)
        self.wait_for_etcd(server, "up")
        role = ("--prefix=true", "bloomery/")
        self.etcd.control("role", "revoke-permission", "bloomery", *role)
        server.wait_for_log("etcd refuses .*permission denied; grant")
        self.wait_for_etcd(server, "down")
        self.etcd.control("role", "grant-permission", "bloomery", role[0], "readwrite", role[1])
        self.wait_for_etcd(server, "up")
        server.wait_for_log("etcd accepts this node's requests again")

    def test_password_file_may_have_windows_line_ends(self):
        self.etcd = self.start_etcd()
        self.etcd.enable_auth(PASSWORD)
        path = self.etcd.folder / "password"
        path.write_bytes(PASSWORD.encode() + b"\r\n")
        done = self.run_tool("--user", "bloomery", "--password-file", path, "status")
        self.assertIn("there is no cluster", done.stderr)

    def test_slow_dns_does_not_cut_a_server_off(self):
        """A lookup takes longer than the time limit of a call."""
        self.etcd = self.start_etcd()
        server = self.start_node(
            EtcdByName(self.etcd), 0, prefix=process_faults(LOOKUP_MS=1500), timeout_ms=5000
        )
        server.wait_for_log("etcd does not answer: .*no address from DNS within")
        self.wait_for_etcd(server, "up")

    def test_silent_watch_hides_no_dead_leader(self):
        self.etcd = self.start_etcd()
        way = EtcdBehindProxy(self.etcd)
        self.addCleanup(way.proxy.close)
        leader = self.start_node(self.etcd, 0)
        replica = self.start_node(way, 1)
        replica.expect_log(".*")
        self.put_topology([leader, replica], 1)
        self.wait_for_replicas([leader, replica], 1)
        way.proxy.stall_all()
        self.check_takeover(leader, replica)

    def links(self, server):
        """Returns the number of the server's threads that keep a connection to another server."""
        names = []
        for path in pathlib.Path(f"/proc/{server.pid}/task").glob("*/comm"):
            with contextlib.suppress(OSError):  # The thread may have ended since glob().
                names.append(path.read_text().strip())
        return names.count("peer")

    def test_links_to_former_members_end(self):
        leader, replica = self.start_pair()
        # Without etcd, the leader asks its replica to promise not to take over. For this request
        # the leader opens a connection to the replica.
        self.etcd.members[0].suspend()
        wait_until(lambda: self.links(leader) == 1, "the leader asks its replica")
        self.etcd.members[0].resume()
        self.tool("remove", f"127.0.0.1:{replica.port}")
        wait_until(lambda: self.links(leader) == 0, "the link ends")

    def test_restored_etcd_is_noticed_and_recovered(self):
        servers = self.start_pair()
        backup = self.etcd.folder / "backup.db"
        self.etcd.save(backup)
        self.tool("failover", "s1")
        old, new = servers
        wait_until(lambda: self.has_role(new, b"master"), "the replica leads")
        self.wait_for_replicas(servers, 1)
        # A new leader can serve without etcd only after etcd has confirmed the leader's epoch.
        self.wait_for_writes(new)
        self.etcd.restore(backup)
        self.wait_for_topology(servers, "older")
        old.wait_for_log("etcd .*older topology")
        status = self.tool("status")
        self.assertRegex(status, "2 servers .*newer topology")
        self.assertFalse(json.loads(self.tool("--json", "status"))["topology_valid"])
        self.wait_for_writes(new)
        before = self.topology()

        # `recover` needs the address of one server only, because each server knows all others.
        address = f"127.0.0.1:{old.port}"
        shown = self.tool("recover", address)
        self.assertIn(f"127.0.0.1:{new.port} keeps revision", shown)
        self.assertIn("nothing was changed", shown)
        self.assertEqual(self.topology(), before)
        self.tool("recover", address, "--yes")
        self.wait_for_topology(servers, "ok")
        self.assertEqual(self.topology()["shards"]["s1"]["leader"], new.node_id)
        self.wait_for_replicas(servers, 1)
        self.assertIn("nothing to recover", self.tool("recover", address, "--yes"))
        self.check_takeover(new, old)

    def test_new_etcd_is_recovered(self):
        servers = self.start_pair()
        before = self.topology()
        self.etcd.restore()
        self.wait_for_topology(servers, "absent")
        servers[0].wait_for_log("etcd has no topology")
        refused = self.run_tool("status")
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, "topology .*lost.*`recover`")
        self.wait_for_writes(servers[0])
        self.tool("recover", f"127.0.0.1:{servers[1].port}", "--yes")
        self.wait_for_topology(servers, "ok")
        self.assertEqual(self.topology()["nodes"], before["nodes"])
        self.wait_for_replicas(servers, 1)
        self.check_takeover(*servers)

    def test_deleted_topology_is_put_back_by_a_leader(self):
        servers = self.start_pair()
        before = self.topology()
        self.etcd.control("del", TOPOLOGY)
        wait_until(lambda: self.etcd.control("get", TOPOLOGY), "it is there again")
        self.assertEqual(self.topology(), before)
        self.wait_for_topology(servers, "ok")
        for server in servers:
            server.wait_for_log("etcd has no topology")
        self.check_takeover(*servers)


if __name__ == "__main__":
    unittest.main()
