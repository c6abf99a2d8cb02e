#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests nodes that restart, load data for a long time, or run out of disk space. The cluster must
keep its data and its leases.
"""

import json
import pathlib
import re
import signal
import unittest

from harness import disks, let_time_pass, wait_until
from harness.cluster import NAME, ClusterTest
from harness.cutting_proxy import CuttingProxy
from harness.info import info
from harness.process import Process

NO_MOUNTS = disks.why_no_mounts()
LOG = ("--appendonly", "yes")
SLOW_LOAD = ("--enable-debug-command", "yes", "--key-load-delay", "10000")
ITEMS = 50
LEASE_S = 3
LAST_POSITION = re.compile(rb"#bloomery-pos:[^\r]*\r\n#bloomery-crc64:[0-9a-f]{16}\r\n$")


class ProxiedEtcd:
    """Replaces the Etcd object of a node, so that the node reaches etcd through the proxy."""

    def __init__(self, proxy):
        self.endpoints = [f"http://127.0.0.1:{proxy.port}"]


class ClusterRestartsTest(ClusterTest):
    def test_restarts_continue_the_stream(self):
        """With an append log, no restarted node needs a full snapshot, whether its process was
        terminated or killed."""
        servers = self.start_cluster(1, 1, *LOG)
        self.ignore_logs(*servers)
        self.wait_for_replicas(servers, 1)
        for number, ends in enumerate((self.terminate, Process.crash)):
            self.add_items(servers[0], f"before-{number}")
            self.wait_for_items(servers, f"before-{number}")
            # Only a node whose log ends with its position in the stream can continue the stream.
            self.wait_for_position(servers[1])
            ends(servers[1])
            self.add_items(servers[0], f"meanwhile-{number}")
            servers[1] = self.start_again(servers[1], 1, *LOG)
            self.wait_for_items(servers, f"meanwhile-{number}")
            self.assertEqual(self.full_syncs(servers[0]), 1, "the first sync was of an empty node")
        self.wait_for_replicas(servers, 1)
        self.terminate(servers[0])
        self.wait_for_writes(servers[1])
        self.add_items(servers[1], "after")
        servers[0] = self.start_again(servers[0], 0, *LOG)
        self.wait_for_items(servers, "after")
        self.assertEqual(self.full_syncs(servers[1]), 0, "the former leader continues")

    def test_leader_with_the_longer_log_leads_again(self):
        """After etcd and both servers were killed, the replica registers in etcd first, but lacks
        acknowledged items. The former leader must lead again."""
        servers = self.start_cluster(1, 1, *LOG)
        self.ignore_logs(*servers)
        self.wait_for_replicas(servers, 1)
        self.add_items(servers[0], "both")
        self.wait_for_items(servers, "both")
        servers[1].suspend()
        self.add_items(servers[0], "leader-only")
        (member,) = self.etcd.members
        member.kill()
        for server in servers:
            server.crash()
        proxy = CuttingProxy(member.client_port)
        self.addCleanup(proxy.close)
        proxy.is_refusing = True
        servers[0] = self.start_again(servers[0], 0, *LOG, etcd=ProxiedEtcd(proxy))
        servers[1] = self.start_again(servers[1], 1, *LOG)
        self.etcd.start()
        wait_until(lambda: self.lease_of(servers[0]) is None, "the leader's old lease ends")
        wait_until(lambda: self.lease_of(servers[1]) is not None, "the replica is registered")
        let_time_pass(1, why="the replica would take over in it")
        proxy.is_refusing = False
        wait_until(lambda: self.leader() == servers[0].node_id, "the former leader leads")
        self.wait_for_state(servers[0])
        self.wait_for_items(servers, "leader-only")

    def test_leader_without_the_newest_leaves_its_shard(self):
        """A power cut on the leader's machine destroys the end of the leader's log. The replica
        keeps running, and must become the leader."""
        servers, size = self.start_with_later_items()
        servers[0].crash()
        self.lose_end_of_log(servers[0], size)
        servers[0] = self.start_again(servers[0], 0, *LOG)
        self.check_replica_leads(servers)

    def test_leader_that_is_back_alone_waits_for_replica(self):
        """Both servers lose power, and the end of the leader's log is destroyed. The leader
        restarts first, and must wait for the replica with the complete log."""
        servers, size = self.start_with_later_items()
        servers[0].crash()
        servers[1].crash()
        self.lose_end_of_log(servers[0], size)
        servers[0] = self.start_again(servers[0], 0, *LOG)
        servers[0].wait_for_log("waits until all .*answered")
        wait_until(lambda: self.lease_of(servers[0]) is None, "the leader's old lease ends")
        let_time_pass(0.5, why="the leader would lead in it")
        servers[1] = self.start_again(servers[1], 1, *LOG)
        self.check_replica_leads(servers)

    def start_with_later_items(self):
        """Starts a leader and a replica, and adds items twice. Returns the servers, and the size of
        the leader's log before the second time.
        """
        servers = self.start_cluster(1, 1, *LOG)
        self.ignore_logs(*servers)
        self.wait_for_replicas(servers, 1)
        self.add_items(servers[0], "before")
        self.wait_for_items(servers, "before")
        self.wait_for_position(servers[0])
        size = self.log_of(servers[0]).stat().st_size
        self.add_items(servers[0], "later")
        self.wait_for_items(servers, "later")
        self.wait_for_position(servers[1])
        return servers, size

    def wait_for_position(self, server):
        wait_until(
            lambda: self.field(server, "persistence", "aof_rewrite_in_progress") == "0",
            "the log's base after the full sync",
        )
        wait_until(
            lambda: LAST_POSITION.search(self.log_of(server).read_bytes()),
            "the last command in the log has a position",
        )

    @staticmethod
    def log_of(server):
        (path,) = (pathlib.Path(server.directory) / "appendonlydir").glob("*.incr.aof")
        return path

    def lose_end_of_log(self, server, size):
        """Changes the server's directory as a power cut does: truncates the log, and sets another
        boot id."""
        log = self.log_of(server)
        log.write_bytes(log.read_bytes()[:size])
        path = pathlib.Path(server.directory) / "cluster.json"
        kept = json.loads(path.read_text(encoding="utf-8"))
        self.assertTrue(kept["kept_boot"])
        kept["kept_boot"] = "an earlier boot"
        path.write_text(json.dumps(kept), encoding="utf-8")

    def check_replica_leads(self, servers):
        wait_until(lambda: self.leader() == servers[1].node_id, "the replica leads")
        self.wait_for_writes(servers[1])
        self.wait_for_items(servers, "later")

    def test_slow_load_ends_no_lease(self):
        """While a replica loads a snapshot, its shard gets another leader. The replica must give up
        loading and keep its lease.
        """
        servers = self.start_cluster(1, 2)
        self.ignore_logs(*servers)
        self.wait_for_replicas(servers, 1)
        with servers[0].connect() as connection:
            commands = [("SET", f"key-{number}", "value") for number in range(3000)]
            replies = [reply for reply, _ in connection.pipeline(commands)]
        self.assertEqual(replies, [b"OK"] * 3000)
        servers[1].crash()
        wait_until(lambda: self.lease_of(servers[1]) is None, "the old lease ends")
        servers[1] = self.start_node(
            self.etcd, 1, *SLOW_LOAD, port=servers[1].port
        )
        self.ignore_logs(servers[1])
        wait_until(lambda: self.lease_of(servers[1]) is not None, "the node is registered")
        wait_until(lambda: self.field(servers[1], "persistence", "loading") == "1", "it loads")
        lease = self.lease_of(servers[1])
        with servers[2].connect() as connection:
            self.assertEqual(connection.call("CLUSTER", "FAILOVER"), b"OK")
        wait_until(lambda: self.leader() == servers[2].node_id, "another node leads")
        servers[1].wait_for_log("loading .*given up")
        with servers[1].connect() as connection:
            self.assertEqual(connection.call("CONFIG", "SET", "key-load-delay", "0"), b"OK")
        self.wait_for_replicas(servers, 1)
        let_time_pass(LEASE_S, why="a lease that was not kept would end in it")
        self.assertEqual(self.lease_of(servers[1]), lease)
        with servers[1].connect() as connection:
            self.assertEqual(connection.call("DBSIZE"), 3000)

    def test_leader_with_a_full_disk_hands_over(self):
        if NO_MOUNTS:
            self.skipTest(NO_MOUNTS)
        disk = disks.Tmpfs(4 << 20)
        self.addCleanup(disk.remove)
        etcd = self.etcd = self.start_etcd(1, host="127.0.0.1")
        servers = [
            self.start_node(etcd, 0, *LOG, directory=disk.path),
            self.start_node(etcd, 1, *LOG),
        ]
        self.ignore_logs(*servers)
        self.put_topology(servers, 1)
        self.wait_for_replicas(servers, 1)
        self.add_items(servers[0], "before")
        disk.fill()
        self.write_until_refused(servers[0])
        wait_until(lambda: self.leader() == servers[1].node_id, "the other node leads")
        self.wait_for_writes(servers[1])
        self.add_items(servers[1], "after")
        self.assertIn("refuses writes", self.tool("status"))
        # A node that cannot write its append log must not become the leader.
        with servers[0].connect() as connection:
            refused = connection.call("CLUSTER", "FAILOVER", "FORCE")
        self.assertRegex(str(refused), "append log of this node|not in sync")
        disk.free()
        self.wait_for_replicas(servers, 1)
        self.wait_for_items(servers, "before")
        self.wait_for_items(servers, "after")
        self.assertNotIn("refuses writes", self.tool("status"))

    def test_replica_with_a_full_disk_gets_no_shard(self):
        """The replica has acknowledged the whole stream, but its log fails. No planned change of
        the leader may choose this replica.
        """
        if NO_MOUNTS:
            self.skipTest(NO_MOUNTS)
        disk = disks.Tmpfs(4 << 20)
        self.addCleanup(disk.remove)
        etcd = self.etcd = self.start_etcd(1, host="127.0.0.1")
        # An idle leader sends nothing, so the replica does not lag behind.
        options = (*LOG, "--repl-ping-replica-period", "3600")
        servers = [
            self.start_node(etcd, 0, *options),
            self.start_node(etcd, 1, *options, directory=disk.path),
        ]
        self.ignore_logs(*servers)
        self.put_topology(servers, 1)
        self.wait_for_replicas(servers, 1)
        disk.fill()
        self.write_beyond_disk(*servers)
        offsets = [self.field(one, "replication", "master_repl_offset") for one in servers]
        self.assertEqual(offsets[0], offsets[1])
        self.check_refuses_shard(servers[1])
        self.terminate(servers[0])
        self.assertFalse([line for line in servers[0].log if "handed over" in line])
        servers[0] = self.start_again(servers[0], 0, *options)
        self.wait_for_writes(servers[0])
        self.add_items(servers[0], "meanwhile")
        self.check_refuses_shard(servers[1])
        # Next, the rolling restart restarts the replica. Its log lacks a write, so the replica must
        # receive this write again from the leader.
        self.terminate(servers[1], code=1)
        disk.free()
        servers[1] = self.start_again(servers[1], 1, *options)
        self.wait_for_replicas(servers, 1)
        self.wait_for_items(servers, "meanwhile")
        self.tool("failover", "s1")
        wait_until(lambda: self.leader() == servers[1].node_id, "the repaired replica leads")
        self.wait_for_writes(servers[1])

    def write_beyond_disk(self, leader, replica):
        """The replica applies one write, for which its full disk has no room."""
        with leader.connect() as connection:
            # A smaller value might still fit in the last page of the log on the full disk.
            self.assertEqual(connection.call("SET", "ballast", b"x" * 8192), b"OK")
        wait_until(
            lambda: self.field(replica, "persistence", "aof_last_write_status") == "err",
            "the replica's log fails",
        )

    def check_refuses_shard(self, replica):
        """Checks that only the leader is in sync, and that each failover to the replica fails."""
        alone = [f"{1:040x}"]
        wait_until(lambda: self.topology()["shards"]["s1"]["insync"] == alone, "it leads alone")
        self.assertRegex(self.tool("status"), rf":{replica.port} +replica +refuses writes")
        with replica.connect() as connection:
            for words in (("CLUSTER", "FAILOVER"), ("CLUSTER", "FAILOVER", "FORCE")):
                answer = str(connection.call(*words))
                self.assertRegex(answer, "append log of this node|not in sync")
        refused = self.run_tool("failover", "s1")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("no replica is alive and in sync", refused.stderr)
        self.assertEqual(self.leader(), alone[0])

    def write_until_refused(self, server):
        def is_refused():
            with server.connect() as connection:
                reply = connection.call("SETRANGE", "ballast", 1 << 16, "end")
            return re.search("MISCONF|IOERR|MOVED", str(reply))

        wait_until(is_refused, "the full disk refuses a write")

    def start_again(self, server, index, *options, etcd=None):
        again = self.start_node(
            etcd or self.etcd, index, *options, port=server.port, directory=server.directory
        )
        self.ignore_logs(again)
        return again

    @staticmethod
    def ignore_logs(*servers):
        for server in servers:
            server.expect_log(".*")

    def terminate(self, server, code=0):
        server.expected_exit = code
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait_for_exit(), code)

    def lease_of(self, server):
        """Returns the lease under which the node is registered in etcd, or None."""
        key = f"bloomery/{NAME}/alive/{server.node_id}"
        found = json.loads(self.etcd.control("get", "-w", "json", key)).get("kvs")
        return found[0]["lease"] if found else None

    def leader(self):
        return self.topology()["shards"]["s1"]["leader"]

    def add_items(self, server, name):
        with server.connect() as connection:
            # The error rate is so low that BF.INSERT should answer 1 for each new item.
            added = connection.call("BF.INSERT", "filter", "ERROR", "0.0000001", "ITEMS",
                                    *(f"{name}-{i}" for i in range(ITEMS)))  # fmt: skip
        self.assertEqual(added, [1] * ITEMS)

    def wait_for_items(self, servers, name):
        wait_until(lambda: self.has_items(servers, name), f"all nodes have the items '{name}'")

    @staticmethod
    def has_items(servers, name):
        """Returns whether all servers have all items with this name, and the same number of items
        in the filter."""
        counts = set()
        for server in servers:
            with server.connect() as connection:
                connection.call("READONLY")
                items = [f"{name}-{i}" for i in range(ITEMS)]
                if connection.call("BF.MEXISTS", "filter", *items) != [1] * ITEMS:
                    return False
                counts.add(connection.call("BF.CARD", "filter"))
        return len(counts) == 1

    @staticmethod
    def field(server, section, name):
        with server.connect() as connection:
            return info(connection, section)[name]

    def full_syncs(self, server):
        return int(self.field(server, "stats", "sync_full"))


if __name__ == "__main__":
    unittest.main()
