#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compares lines of MONITOR with those of redis-server: their format, their quotes, and hidden
secrets. Also tests MONITOR with several threads and on a replica, and CONFIG SET
cluster-node-timeout.
"""

import re
import unittest

from harness import ServerTest, wait_until
from harness.resp import encode

# Commands to send to both servers. MONITOR shows failing commands too, so some of them fail.
COMMANDS = [
    ["SET", "k", "a b\"c\\d\n\r\t\a\b\x00\x7f"],
    [b"SET", b"bin\xff\x80", b"\x01\x02"],
    ["set", "Case", "v", "EX", "100"],
    ["GET", "k"],
    ["GET"],
    ["NOSUCH", "x"],
    ["INCR", "k"],
    ["SELECT", "3"],
    ["MSET"] + ["w"] * 60,
    ["SET", "long", "x" * 500],
    ["DEL"] + [f"key{i}" for i in range(31)],
    ["DEL"] + [f"key{i}" for i in range(32)],
    ["CLIENT", "SETNAME", "tester"],
    ["CLIENT", "NO-EVICT", "off"],
    ["CONFIG", "GET", "maxmemory"],
    ["CONFIG", "SET", "timeout", "0", "masterauth", "hidden-secret"],
    ["CONFIG", "SET", "masterauth"],
    ["AUTH", "default", "hidden-secret"],
    ["AUTH", "hidden-secret"],
    ["HELLO", "2", "AUTH", "default", "hidden-secret", "SETNAME", "tester"],
    ["HELLO", "2", "SETNAME", "tester", "AUTH", "nobody", "hidden-secret"],
    ["MULTI"],
    ["SET", "k", "1"],
    ["SELECT", "0"],
    ["INCR", "k"],
    ["EXEC"],
    ["MULTI"],
    ["DISCARD"],
    ["WATCH", "k"],
    ["UNWATCH"],
    ["PUBLISH", "channel", "message"],
    ["SUBSCRIBE", "channel"],
    ["UNSUBSCRIBE", "channel"],
    ["BITCOUNT", "k"],
    ["INFO", "server"],
    ["COMMAND", "COUNT"],
    ["MEMORY", "USAGE", "k"],
    ["OBJECT", "ENCODING", "k"],
    ["WAIT", "0", "1"],
    ["SLOWLOG", "LEN"],
    ["TIME"],
    ["ECHO", ""],
]


def shown(line):
    """Returns the database and the command of a line of MONITOR, without the time and the port,
    which differ between the servers."""
    match = re.fullmatch(rb"\d{10,}\.\d{6} \[(\d+) 127\.0\.0\.1:\d+\] (.*)", bytes(line), re.S)
    assert match, line
    return match.groups()


class IntrospectionTest(ServerTest):
    def setUp(self):
        debug = ["--enable-debug-command", "yes"]
        self.servers = [self.start_server("--io-threads", "2", *debug), self.start_redis(*debug)]

    def connect_both(self):
        connections = [server.connect() for server in self.servers]
        for connection in connections:
            self.addCleanup(connection.close)
        return connections

    def lines_until(self, monitor, mark):
        lines = []
        while True:
            value, _ = monitor.read_reply()
            lines.append(shown(value))
            if mark in lines[-1][1]:
                return lines

    def test_monitors_show_the_same_as_in_redis(self):
        seen = []
        for client, monitor in zip(self.connect_both(), self.connect_both()):
            self.assertEqual(monitor.call("MONITOR"), b"OK")
            for command in COMMANDS:
                client.call(*command)
            client.call("ECHO", "the end")
            lines = self.lines_until(monitor, b"the end")
            self.assertFalse([line for line in lines if b"hidden-secret" in line[1]])
            self.assertIn("flags=O", client.call("CLIENT", "LIST").decode())
            seen.append(lines)
        self.assertEqual(*seen)

    def test_the_timeout_of_cluster_nodes_can_be_set(self):
        for server, connection in zip(self.servers, self.connect_both()):
            with self.subTest(server=server):
                name = "cluster-node-timeout"
                self.assertEqual(connection.call("CONFIG", "SET", name, "20000"), b"OK")
                self.assertEqual(connection.call("CONFIG", "GET", name)[1], b"20000")

    def test_replicas_monitor_shows_the_leaders_stream(self):
        """As in Redis, a replica's MONITOR shows the leader's address."""
        leader = self.servers[0]
        leader.expect_log("lost")
        replica = self.start_server("--replicaof", f"127.0.0.1 {leader.port}")
        replica.expect_log("lost|refused")
        monitor, client, follower = replica.connect(), leader.connect(), replica.connect()
        for connection in (monitor, client, follower):
            self.addCleanup(connection.close)
        client.call("CONFIG", "SET", "repl-diskless-sync-delay", "0")
        client.call("SET", "first", "v")
        wait_until(lambda: follower.call("EXISTS", "first") == 1)
        monitor.call("MONITOR")
        client.call("SELECT", "2")
        client.call("SET", "k", "v")
        line = b""
        while b'"k"' not in line:  # The monitor may also see the first SET.
            line, _ = monitor.read_reply()
        self.assertEqual(shown(line), (b"2", b'"SET" "k" "v"'))
        self.assertIn(f"127.0.0.1:{leader.port}]".encode(), line)

    def test_monitors_of_all_threads_see_one_order(self):
        server = self.servers[0]
        monitors = [server.connect() for _ in range(4)]
        clients = [server.connect() for _ in range(4)]
        for connection in monitors + clients:
            self.addCleanup(connection.close)
        for monitor in monitors:
            monitor.call("MONITOR")
        for number in range(200):
            for which, client in enumerate(clients):
                client.send(encode("ECHO", f"{which}:{number}"))
        for client in clients:
            for _ in range(200):
                client.read_reply()
        clients[0].call("ECHO", "the end")
        lines = [self.lines_until(monitor, b"the end") for monitor in monitors]
        self.assertEqual(len(lines[0]), 801)
        for other in lines[1:]:
            self.assertEqual(lines[0], other)


if __name__ == "__main__":
    unittest.main()
