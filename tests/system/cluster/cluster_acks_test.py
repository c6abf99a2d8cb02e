#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests guarantees of replicas. With `cluster-write-acks insync`, a reply to a write waits for all
members in sync. `replica-max-staleness` limits the age of data that replicas serve. Metrics and
`bloomery-cluster status` show members in sync, failovers by cause, and how often a leader lost its
permit to acknowledge writes."""

import json
import re
import signal
import threading
import unittest
import urllib.request

from harness import DEADLINE_S, free_port, let_time_pass, wait_until
from harness.cluster import ClusterTest
from harness.resp import Connection, ErrorReply

WRITES = 200
# The key is in slot 3300, which belongs to the first of three shards.
KEY = "b"


class ClusterAcksTest(ClusterTest):
    def start_acknowledging(self, replicas=1, **more):
        servers = self.start_cluster(
            1, replicas, "--appendonly", "yes", "--cluster-write-acks", "insync", **more
        )
        for server in servers:
            server.expect_log(".*")
        self.wait_for_replicas(servers, 1)
        return servers

    def insync(self):
        return sorted(self.topology()["shards"]["s1"]["insync"])

    def test_acknowledged_writes_are_on_the_replica(self):
        leader, replica = self.start_acknowledging()
        with leader.connect() as writer, replica.connect() as reader:
            reader.call("READONLY")
            for number in range(WRITES):
                self.assertEqual(writer.call("SET", KEY, number), b"OK")
                self.assertEqual(reader.call("GET", KEY), str(number).encode())
            # The error rate is so low that none of the items is a false positive.
            writer.call("BF.RESERVE", "{b}f", "0.000001", WRITES)
            replies = writer.pipeline([["BF.ADD", "{b}f", str(i)] for i in range(WRITES)])
            self.assertEqual([reply for reply, _ in replies], [1] * WRITES)
            # Reads need no acknowledgement of replicas, so they do not wait for a suspended
            # replica.
            replica.suspend()
            self.assertEqual(writer.call("GET", KEY), str(WRITES - 1).encode())
            replica.resume()

    def test_silent_replica_holds_writes_until_it_leaves(self):
        # The replica leaves the list after 10 s, so the checks before that may be slow.
        leader, replica = self.start_acknowledging(timeout_ms=5000)
        replica.suspend()
        with leader.connect(timeout_s=DEADLINE_S) as writer:
            replies = []
            thread = threading.Thread(target=lambda: replies.append(writer.call("SET", KEY, "1")))
            thread.start()
            let_time_pass(0.5, "a reply that does not wait would have come")
            self.assertEqual((replies, len(self.insync())), ([], 2))
            thread.join(DEADLINE_S)
            self.assertEqual(replies, [b"OK"])
            self.assertEqual(self.insync(), [leader.node_id])
            # Once the replica is in sync again, replies to writes wait for its acknowledgement
            # again.
            replica.resume()
            self.wait_for_replicas([leader, replica], 1)
            self.assertEqual(writer.call("SET", KEY, "2"), b"OK")
        with replica.connect() as reader:
            reader.call("READONLY")
            self.assertEqual(reader.call("GET", KEY), b"2")

    def test_killed_leader_loses_no_acknowledged_write(self):
        servers = self.start_acknowledging(2)
        leader = servers[0]
        acknowledged = []
        connection = Connection(leader.port, timeout_s=DEADLINE_S)
        self.addCleanup(connection.close)

        def write():
            try:
                for number in range(1_000_000):
                    if connection.call("SETBIT", KEY, number, 1) == 0:
                        acknowledged.append(number)
            except (OSError, EOFError):
                pass

        thread = threading.Thread(target=write)
        thread.start()
        wait_until(lambda: len(acknowledged) > WRITES, "writes are acknowledged")
        leader.crash()
        thread.join(DEADLINE_S)
        wait_until(lambda: self.topology()["shards"]["s1"]["leader"] != leader.node_id, "failover")
        new_id = self.topology()["shards"]["s1"]["leader"]
        new = next(server for server in servers if server.node_id == new_id)
        self.wait_for_writes(new)
        with new.connect() as reader:
            bits = reader.pipeline([["GETBIT", KEY, str(number)] for number in acknowledged])
        self.assertEqual([bit for bit, _ in bits], [1] * len(acknowledged))

    def test_planned_restart_releases_writes(self):
        leader, replica = self.start_acknowledging()
        leader.process.send_signal(signal.SIGTERM)
        self.assertEqual(leader.wait_for_exit(), 0)
        wait_until(lambda: self.has_role(replica, b"master"), "the replica leads")
        self.wait_for_writes(replica)
        self.assertEqual(self.insync(), [replica.node_id])

    def test_stale_replica_sends_readers_on(self):
        leader, replica = self.start_cluster(
            1, 1, "--replica-max-staleness", "3000", "--repl-ping-replica-period", "1",
            timeout_ms=20000,
        )  # fmt: skip
        for server in (leader, replica):
            server.expect_log(".*")
        self.wait_for_replicas([leader, replica], 1)
        with replica.connect() as reader:
            reader.call("READONLY")
            let_time_pass(4, "an idle leader only pings")
            self.assertIsNone(reader.call("GET", KEY))
            leader.suspend()
            wait_until(lambda: isinstance(reader.call("GET", KEY), ErrorReply), "it is stale")
            self.assertEqual(reader.call("GET", KEY).text, f"MOVED 3300 127.0.0.1:{leader.port}")
            reader.call("CONFIG", "SET", "replica-max-staleness", "0")
            self.assertIsNone(reader.call("GET", KEY))
            leader.resume()

    # Tests of the metrics and of `bloomery-cluster status`.

    def metric(self, port, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE_S) as page:
            text = page.read().decode()
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        self.assertIsNotNone(found, name)
        return float(found[1])

    def wait_for_metric(self, port, name, value):
        wait_until(
            lambda: self.metric(port, name) == value,
            lambda: f"{value} as {name}, which is {self.metric(port, name)}",
        )  # fmt: skip

    def test_failovers_and_members_are_counted(self):
        ports = [free_port(), free_port()]
        self.etcd = self.start_etcd()
        servers = [
            self.start_node(self.etcd, index, "--appendonly", "yes", "--http-port", port)
            for index, port in enumerate(ports)
        ]
        for server in servers:
            server.expect_log(".*")
        self.put_topology(servers, 1)
        self.wait_for_replicas(servers, 1)
        members = 'bloomery_cluster_shard_members_in_sync{shard="s1"}'
        self.wait_for_metric(ports[0], members, 2)
        self.metric(ports[0], 'bloomery_cluster_shard_bytes_behind{shard="s1"}')
        self.tool("failover", "s1")
        self.wait_for_replicas(servers, 1)
        handover = 'bloomery_cluster_failovers_total{shard="s1",cause="handover"}'
        self.wait_for_metric(ports[1], handover, 1)
        self.tool("failover", "s1", "--force")
        self.wait_for_replicas(servers, 1)
        forced = 'bloomery_cluster_failovers_total{shard="s1",cause="forced"}'
        self.wait_for_metric(ports[0], forced, 1)
        shard = json.loads(self.tool("--json", "status"))["shards"][0]
        self.assertEqual(shard["members_in_sync"], 2)
        self.assertGreaterEqual(shard["bytes_behind"], 0)
        self.assertTrue(all(node["version"] for node in shard["nodes"]))
        self.assertEqual(shard["nodes"][0]["failovers"]["forced"], 1)
        self.check_takeover(servers[0], servers[1])
        lost = 'bloomery_cluster_failovers_total{shard="s1",cause="lost_leader"}'
        self.wait_for_metric(ports[1], lost, 1)

    def test_lapses_of_the_permit_are_counted(self):
        leader, replica = self.start_cluster(1, 1, timeout_ms=5000)
        for server in (leader, replica):
            server.expect_log(".*")
        self.wait_for_replicas([leader, replica], 1)

        def lapses():
            with leader.connect() as connection:
                text = connection.call("CLUSTER", "INFO").decode()
            return int(re.search(r"cluster_permit_lapses:(\d+)", text)[1])

        before = lapses()
        # If a leader reaches neither etcd nor its replica, it loses its permit to acknowledge
        # writes.
        self.etcd.members[0].suspend()
        replica.suspend()
        wait_until(lambda: lapses() > before, "the lapse is counted")
        self.etcd.members[0].resume()
        replica.resume()


if __name__ == "__main__":
    unittest.main()
