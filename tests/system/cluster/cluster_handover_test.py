#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests planned changes of leaders while redis-py, redis-cli, ioredis and node-redis write. CLUSTER
FAILOVER and SIGTERM hand a shard over to its replica, and no write is lost. The test prints the
pauses but does not limit them, because they depend on the machine."""

import signal
import time
import unittest

from harness import let_time_pass, wait_until
from harness.cluster_load import SHARDS, ClusterLoadTest
from harness.process import Process
from harness.redirects import FollowingClient
from harness.settings import SERVER

FAILOVERS = 6
# Time for which etcd is stopped. It exceeds the limit of most calls between nodes (0.3 s).
SLOW_ETCD_S = 0.5
# Within this time the successor must report that it serves; see Succession::kAnswerUs.
REPORT_S = 1.8


class ClusterHandoverTest(ClusterLoadTest):
    def test_no_write_is_lost(self):
        self.start_load("--appendonly", "yes")
        for lane in range(SHARDS):
            self.fail_over(lane)
        for lane in (0, 2):
            self.terminate(lane)
        for writer in self.writers:
            writer.stop()
        self.check_all()

    def test_failovers_send_no_client_in_circles(self):
        # The delay of diskless snapshots does not apply to members of the leader's own shard. So
        # the replica gets its snapshot at once.
        servers = self.start_cluster(1, 1, "--repl-diskless-sync-delay", "600")
        self.wait_for_replicas(servers, 1)
        clients = []
        for number in range(4):
            ports = [server.port for server in servers]
            client = FollowingClient(f"f{number}", *(ports if number % 2 else ports[::-1]))
            self.addCleanup(client.end)
            clients.append(client)
        for number in range(FAILOVERS):
            self.wait_for_replicas(servers, 1)
            added = [client.added for client in clients]
            wait_until(
                lambda: all(client.added > since for client, since in zip(clients, added)),
                lambda: f"all clients go on; {[client.errors for client in clients]}",
            )
            new = servers[(number + 1) % 2]
            with new.connect() as connection:
                self.assertEqual(connection.call("CLUSTER", "FAILOVER"), b"OK")
            wait_until(lambda: self.shard(0)["leader"] == new.node_id, "the replica leads")
        for client in clients:
            client.end()
        self.assertEqual([client.errors for client in clients], [[]] * len(clients))
        self.assertEqual(sum(client.unknown for client in clients), 0)
        moved = [count for client in clients for count in client.moved if count]
        longest = max(pause for client in clients for pause in client.pauses)
        print(f"{len(moved)} requests sent on, at most {max(moved)} times; "
              f"longest pause {longest * 1000:.0f} ms", flush=True)  # fmt: skip
        self.assertGreaterEqual(len(moved), FAILOVERS)
        self.assertLessEqual(max(moved), 2)

    def test_slow_etcd_prolongs_no_wait_of_clients(self):
        """Stops etcd during a handover for longer than other calls between nodes may take. Clients
        of the former leader wait only until the successor reports that it serves.
        """
        servers = self.start_cluster(1, 1)
        number = 0
        stopped_s = REPORT_S
        while stopped_s >= REPORT_S:
            self.wait_for_replicas(servers, 1)
            old, new = servers[number % 2], servers[(number + 1) % 2]
            lines = len(old.log)
            stopped_s = self.fail_over_without_etcd(old, new)
            wait_until(lambda: self.shard(0)["leader"] == new.node_id, "the replica leads")
            self.wait_for_replicas(servers, 1)
            number += 1
        late = [line for line in old.log[lines:] if "not reported in time" in line]
        self.assertEqual(late, [])

    def fail_over_without_etcd(self, old, new):
        """Stops etcd, and hands the shard over. Returns for how many seconds etcd was stopped."""
        with new.connect() as connection, old.connect() as client:
            (member,) = self.etcd.members
            member.suspend()
            begin = time.monotonic()
            self.assertEqual(connection.call("CLUSTER", "FAILOVER"), b"OK")
            let_time_pass(SLOW_ETCD_S, "a call between nodes exceeds its usual limit")
            member.resume()
            stopped_s = time.monotonic() - begin
            self.assertIn(b"MOVED", str(client.call("SET", "k", "v")).encode())
        return stopped_s

    def test_sigterm_ends_a_node_that_loads(self):
        options = ["--appendonly", "yes"]
        (server,) = self.start_cluster(1, 0, *options)
        commands = 50
        while True:
            with server.connect() as connection:
                connection.call("SETRANGE", "ballast", 2 << 20, "end")
                for _ in range(commands):
                    connection.call("BITOP", "NOT", "ballast", "ballast")
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.wait_for_exit(), 0)
            if self.ends_while_loading(server):
                return
            server = self.start_node(self.etcd, 0, *options, directory=server.directory)
            self.wait_for_state(server)
            commands *= 2

    def ends_while_loading(self, server):
        """Starts the server again, and ends it with SIGTERM while it loads its log. Returns whether
        the log was still being loaded.
        """
        # Skips the first words of the command, which are the program and its directory.
        again = Process(SERVER, server.command[3:], listen=False, directory=server.directory)
        self.addCleanup(again.kill)
        again.wait_for_log(r"Loading .*\.incr\.aof")
        again.process.send_signal(signal.SIGTERM)
        self.assertEqual(again.wait_for_exit(), 0)
        return not any("DB loaded" in line for line in again.log)

    def fail_over(self, lane):
        old, new = self.leader(lane), self.replica(lane)
        begin = time.monotonic()
        with new.connect() as connection:
            self.assertEqual(connection.call("CLUSTER", "FAILOVER"), b"OK")
        self.check_handover(f"CLUSTER FAILOVER of s{lane + 1}", lane, old, new, begin)
        # All clients follow MOVED, so no client may report an error.
        self.check_errors(begin, [])
        self.wait_until_whole()

    def terminate(self, lane):
        old, new = self.leader(lane), self.replica(lane)
        begin = time.monotonic()
        old.process.send_signal(signal.SIGTERM)
        self.check_handover(f"SIGTERM of s{lane + 1}", lane, old, new, begin)
        # This log line shows that the leader handed its shard over. Otherwise its replica would
        # have waited until the leader's lease expired.
        old.wait_for_log(f"shard .*handed over to {new.node_id}")
        self.assertEqual(old.wait_for_exit(), 0)
        self.check_errors(begin, [lane])
        self.restart(old)
        self.wait_until_whole()

    def check_handover(self, what, lane, old, new, begin):
        wait_until(lambda: self.leader(lane) is new, "the replica leads")
        took = time.monotonic() - begin
        self.wait_for_writers(time.monotonic() + 1, [lane])
        pauses = {writer.name: self.longest_pause(writer, lane, begin) for writer in self.writers}
        stall = self.pulse.stalled_since(begin)
        summary = ", ".join(f"{name} {pause * 1000:.0f}" for name, pause in pauses.items())
        print(f"{what}: {took:.2f} s; longest pauses {summary} ms; "
              f"{stall * 1000:.0f} ms stalled", flush=True)  # fmt: skip
        self.check_present()

    @staticmethod
    def longest_pause(writer, lane, begin):
        times = [ack.at for ack in writer.acknowledged if ack.lane == lane]
        return max(b - a for a, b in zip(times, times[1:]) if b > begin)


if __name__ == "__main__":
    unittest.main()
