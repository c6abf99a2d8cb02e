#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests combinations of two features that no other cluster test covers. The first feature is stale
reads, child processes that save, host names, or the record of slots in etcd. The second feature is
stalled links, transactions, failovers or restarts.
"""

import collections
import json
import signal
import threading
import unittest

from harness import DEADLINE_S, wait_until
from harness.cluster import NAME, TOPOLOGY, ClusterTest
from harness.cutting_proxy import CuttingProxy
from harness.info import info
from harness.resp import ErrorReply

# The key is in slot 3300, which belongs to the first of two shards.
KEY = "b"
RECORD = f"bloomery/{NAME}/slots"
LOG = ("--appendonly", "yes")
# Each key delays a child process by 60 s. The server kills the child when the test ends.
SLOW_SAVES = ("--enable-debug-command", "yes", "--rdb-key-save-delay", "60000000")
# cluster-node-timeout of a test with a stalled link. A member that acknowledges nothing leaves the
# list of members in sync after twice this time.
STALL_TIMEOUT_MS = 5000

# A server as the topology shows it: other servers and clients reach it at `port`.
Shown = collections.namedtuple("Shown", "node_id host port")


def field(server, section, name):
    with server.connect() as connection:
        return info(connection, section)[name]


class ClusterPairsTest(ClusterTest):
    def start_pair(self, *options):
        servers = self.start_cluster(1, 1, *LOG, *options)
        for server in servers:
            server.expect_log(".*")
        self.wait_for_replicas(servers, 1)
        return servers

    def insync(self):
        return sorted(self.topology()["shards"]["s1"]["insync"])

    # Tests of stale replicas and stalled links.

    def start_pair_with_proxy(self, *options):
        """Starts a leader and its replica. Other processes reach the leader by a proxy."""
        self.etcd = self.start_etcd()
        servers = [
            self.start_node(self.etcd, index, *LOG, *options, timeout_ms=STALL_TIMEOUT_MS)
            for index in range(2)
        ]
        for server in servers:
            server.expect_log(".*")
        leader, replica = servers
        proxy = CuttingProxy(leader.port)
        self.addCleanup(proxy.close)
        self.put_topology([Shown(leader.node_id, leader.host, proxy.port), replica], 1)
        self.wait_for_replicas(servers, 1)
        return leader, replica, proxy

    def test_stalled_link_makes_replica_stale(self):
        """The link between the replica and its running leader stalls. Meanwhile a child process of
        the replica saves, and clients of the replica run transactions. Writes at the leader wait
        until the replica has left the list of members in sync.
        """
        leader, replica, proxy = self.start_pair_with_proxy(
            *SLOW_SAVES, "--replica-max-staleness", "2000", "--repl-ping-replica-period", "1",
            "--cluster-write-acks", "insync",
        )  # fmt: skip
        writer = leader.connect(timeout_s=DEADLINE_S)
        self.addCleanup(writer.close)
        self.assertEqual(writer.call("SET", KEY, "1"), b"OK")
        moved = f"MOVED 3300 127.0.0.1:{proxy.port}"
        with replica.connect() as reader, replica.connect() as early:
            for connection in (reader, early):
                self.assertEqual(connection.call("READONLY"), b"OK")
            self.start_save(replica)
            self.assertEqual(self.transaction(reader), [b"1"], "a child makes nothing stale")
            self.assertEqual(early.call("MULTI"), b"OK")
            self.assertEqual(early.call("GET", KEY), b"QUEUED")
            proxy.stall_all()
            replies = []
            thread = threading.Thread(target=lambda: replies.append(writer.call("SET", KEY, "2")))
            thread.start()
            wait_until(lambda: isinstance(reader.call("GET", KEY), ErrorReply), "it is stale")
            self.assertEqual((replies, len(self.insync())), ([], 2), "the write waits longer")
            self.assertTrue(self.is_saving(replica))
            self.assertEqual(reader.call("GET", KEY).text, moved)
            self.assertEqual(early.call("EXEC").text, moved)
            self.assertEqual(self.transaction(reader), [moved, "EXECABORT"])
            thread.join(DEADLINE_S)
            self.assertEqual((replies, self.insync()), ([b"OK"], [leader.node_id]))
            proxy.cut_all()
            self.wait_for_replicas([leader, replica], 1)
            self.assertEqual(writer.call("SET", KEY, "3"), b"OK")
            self.assertEqual(self.transaction(early), [b"3"])

    @staticmethod
    def transaction(connection):
        """Reads the key in a transaction. Returns the values, or the texts of the errors."""
        replies = [connection.call(*words) for words in (("MULTI",), ("GET", KEY), ("EXEC",))]
        queued, executed = replies[1:]
        if isinstance(executed, ErrorReply):
            return [queued.text, executed.text.split()[0]]
        return executed

    # The methods below test a failover while child processes save.

    def start_save(self, server):
        with server.connect() as connection:
            self.assertEqual(connection.call("BGSAVE"), b"Background saving started")
        self.assertTrue(self.is_saving(server))

    @staticmethod
    def is_saving(server):
        return field(server, "persistence", "rdb_bgsave_in_progress") == "1"

    def test_save_children_hinder_no_failover(self):
        first, second = self.start_pair(*SLOW_SAVES)
        with first.connect() as connection:
            self.assertEqual(connection.call("SET", KEY, "1"), b"OK")
        for server in (first, second):
            self.start_save(server)
        with second.connect() as connection:
            self.assertEqual(connection.call("CLUSTER", "FAILOVER"), b"OK")
        wait_until(lambda: self.has_role(second, b"master"), "the replica leads")
        self.wait_for_writes(second)
        self.wait_for_replicas([first, second], 1)
        self.assertTrue(self.is_saving(first) and self.is_saving(second))
        with second.connect() as connection:
            self.assertEqual(connection.call("SET", KEY, "2"), b"OK")
            self.assertEqual(connection.call("WAIT", 1, 0), 1)
        self.check_takeover(second, first)
        self.assertTrue(self.is_saving(first), "its child outlives both changes of the role")
        with first.connect() as connection:
            self.assertEqual(connection.call("GET", KEY), b"2")

    # Tests of a cluster whose nodes announce host names instead of addresses.

    def test_host_names_reach_readers_in_resp3(self):
        leader, replica = self.start_pair(
            "--cluster-announce-hostname", "localhost",
            "--cluster-preferred-endpoint-type", "hostname",
        )  # fmt: skip

        def host_names(server):
            with server.connect() as connection:
                nodes = connection.call("CLUSTER", "SLOTS")[0][2:]
            return [node[0] for node in nodes]

        for server in (leader, replica):
            wait_until(
                lambda one=server: host_names(one) == [b"localhost"] * 2,
                f"{server.port} shows the host names",
            )  # fmt: skip
        with leader.connect() as writer:
            self.assertEqual(writer.call("SET", KEY, "1"), b"OK")
            self.assertEqual(writer.call("WAIT", 1, 0), 1)
        with replica.connect() as reader:
            reader.call("HELLO", 3)
            moved = f"MOVED 3300 localhost:{leader.port}"
            self.assertEqual(reader.call("GET", KEY).text, moved)
            reader.call("READONLY")
            self.assertEqual(reader.call("GET", KEY), b"1")
            self.assertEqual(reader.call("SET", KEY, "2").text, moved)
            nodes = reader.call("CLUSTER", "SLOTS")[0][2:]
            shown = [(node[0], node[1], node[3]) for node in nodes]
            address = {b"ip": b"127.0.0.1"}
            self.assertEqual(shown, [(b"localhost", server.port, address)
                                     for server in (leader, replica)])  # fmt: skip

    # Tests of the record of slots in etcd.

    def create(self, shards):
        """Starts leaders without replicas. bloomery-cluster makes the cluster, and records its
        slots in etcd.
        """
        self.etcd = self.start_etcd()
        servers = [self.start_node(self.etcd, index, *LOG) for index in range(shards)]
        for server in servers:
            server.expect_log(".*")
        addresses = [f"127.0.0.1:{server.port}" for server in servers]
        alive = f"bloomery/{NAME}/alive/"
        wait_until(lambda: len(self.etcd.control("get", "--prefix", "--keys-only", alive).split())
                   == shards, "the servers register")  # fmt: skip
        self.tool("create", *addresses)
        for server in servers:
            self.wait_for_state(server)
        return servers

    def record(self):
        return self.etcd.control("get", "--print-value-only", RECORD).strip()

    def wait_for_topology(self, servers, state):
        for server in servers:
            def shows(one=server):
                with one.connect() as connection:
                    text = connection.call("CLUSTER", "INFO").decode()
                return f"cluster_topology:{state}\r\n" in text

            wait_until(shows, f"{server.port} shows {state}")

    def slots_of(self, server):
        with server.connect() as connection:
            return [row[:2] for row in connection.call("CLUSTER", "SLOTS")]

    def move_slots(self):
        """Changes the slots in etcd's topology by hand, but not in the record of slots."""
        document = self.topology()
        document["shards"]["s1"]["slots"] = "0-8190"
        document["shards"]["s2"]["slots"] = "8191-16383"
        self.etcd.control("put", TOPOLOGY, json.dumps(document))

    def test_moved_slots_survive_no_rolling_restart(self):
        """The slots in etcd's topology no longer match the recorded checksum of the slots. All
        servers restart. No server adopts the changed slots.
        """
        servers = self.create(2)
        record, slots = self.record(), self.slots_of(servers[0])
        self.assertTrue(record)
        self.move_slots()
        self.wait_for_topology(servers, "invalid")
        for index, server in enumerate(servers):
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.wait_for_exit(), 0)
            servers[index] = again = self.start_node(
                self.etcd, index, *LOG, port=server.port, directory=server.directory
            )
            again.expect_log(".*")
            self.wait_for_topology([again], "invalid")
            self.assertEqual(self.slots_of(again), slots)
        self.tool("recover", f"127.0.0.1:{servers[1].port}", "--yes")
        for server in servers:
            self.wait_for_state(server)
            self.assertEqual(self.slots_of(server), slots)
        self.assertEqual(self.record(), record)

    def test_restored_etcd_keeps_the_record(self):
        """etcd is restored from a backup that is older than the record of slots. `recover` writes
        the record again. Afterwards the servers reject a topology with other slots.
        """
        servers = self.start_cluster(2)
        for server in servers:
            server.expect_log(".*")
        slots = self.slots_of(servers[0])
        backup = self.etcd.folder / "backup.db"
        self.etcd.save(backup)
        self.assertEqual(self.record(), "")
        spare = self.start_node(self.etcd, 2)
        spare.expect_log(".*")
        address = f"127.0.0.1:{spare.port}"
        wait_until(lambda: self.run_tool("add", address).returncode == 0, "the spare is added")
        record = self.record()
        self.assertTrue(record)
        self.etcd.restore(backup)
        self.wait_for_topology(servers, "older")
        self.assertEqual(self.record(), "")
        self.tool("recover", address, "--yes")
        self.wait_for_topology(servers, "ok")
        self.assertEqual(self.record(), record)
        self.move_slots()
        self.wait_for_topology(servers, "invalid")
        self.assertEqual(self.slots_of(servers[0]), slots)


if __name__ == "__main__":
    unittest.main()
