#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""SLOWLOG and MONITOR, compared with redis-server: what is shown, how it is cut and quoted, which
secrets are hidden; and what a monitor that does not read may cost."""

import re
import time
import unittest

from harness import SANITIZED, ServerTest, wait_until
from resp import encode

# Commands, and whether both servers run them alike; those that fail are shown too.
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
    """A line of MONITOR without what differs between two servers."""
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

    def test_a_monitor_reaches_no_keys(self):
        refused = b"-ERR Replica can't interact with the keyspace\r\n"
        for connection in self.connect_both():
            self.assertEqual(connection.call("MONITOR"), b"OK")
            for command in (
                ["GET", "k"], ["SET", "k", "v"], ["PUBLISH", "c", "m"], ["KEYS", "*"],
            ):  # fmt: skip
                connection.send(encode(*command))
                self.assertEqual(connection.read_reply()[1], refused, command)
            self.assertEqual(connection.call("RESET"), b"RESET")
            self.assertIsNone(connection.call("GET", "k"))

    def test_monitors_see_what_they_see_in_redis(self):
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

    def test_the_slow_log_is_that_of_redis(self):
        logs = []
        for client in self.connect_both():
            client.call("CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "1000")
            client.call("SLOWLOG", "RESET")
            for command in COMMANDS:
                client.call(*command)
            self.assertEqual(client.call("SLOWLOG", "GET", "1")[0][3], [b"ECHO", b""])
            entries = client.call("SLOWLOG", "GET", "-1")
            for entry, older in zip(entries, entries[1:]):
                identity, stamp, duration, words, address, name = entry
                self.assertEqual(identity, older[0] + 1)
                self.assertLess(abs(stamp - time.time()), 60)
                self.assertGreaterEqual(duration, 0)
                self.assertNotIn(b"hidden-secret", words)
                self.assertRegex(address.decode(), r"^127\.0\.0\.1:\d+$")
                self.assertIn(name, (b"", b"tester"))
            logs.append([(entry[3], entry[5]) for entry in entries])
        self.assertEqual(*logs)

    def test_replies_are_the_same_bytes(self):
        commands = [
            ["SLOWLOG", "GET", "x"],
            ["SLOWLOG", "GET", "-2"],
            ["SLOWLOG", "get", "1", "2"],
            ["SLOWLOG", "GET", "0"],
            ["SLOWLOG", "LEN"],
            ["SLOWLOG", "LEN", "x"],
            ["SLOWLOG", "RESET"],
            ["SLOWLOG", "NOSUCH"],
            ["MONITOR", "x"],
            ["CONFIG", "SET", "slowlog-log-slower-than", "-2"],
            ["CONFIG", "SET", "slowlog-max-len", "-1"],
            ["CONFIG", "SET", "slowlog-max-len", "5"],
            ["CONFIG", "GET", "slowlog-max-len"],
            *(
                [word, "latency-tracking-info-percentiles", *value]
                for value in (["50 99"], [""], ["101"], ["abc"], ["-1"], ["50 50"], ["nan"],
                              ["99.99999 0.5"], ["50.0 100"], ["1e1"])
                for word in ("CONFIG SET", "CONFIG GET")
            ),
            ["LATENCY", "LATEST"],
            ["LATENCY", "HISTORY", "command"],
            ["LATENCY", "HISTORY"],
            ["LATENCY", "GRAPH", "command"],
            ["LATENCY", "RESET"],
            ["LATENCY", "RESET", "command", "fork"],
            ["LATENCY", "HISTOGRAM", "nosuch", "bitop"],
            ["LATENCY", "NOSUCH"],
            ["CONFIG", "SET", "latency-monitor-threshold", "-1"],
            ["MULTI"],
            ["MONITOR"],
            ["EXEC"],
        ]
        ours, theirs = self.connect_both()
        for command in commands:
            words = command[0].split() + command[1:]
            if command[0] == "CONFIG GET":
                words = words[:3]
            self.assertEqual(ours.call_raw(*words), theirs.call_raw(*words), words)

    def slowest_commands(self, connection):
        """On a busy machine other things may take their time, too."""
        events = connection.call("LATENCY", "LATEST")
        (of_commands,) = [event for event in events if event[0] == b"command"]
        return of_commands

    def test_latency_events_have_the_shapes_of_redis(self):
        ours, theirs = self.connect_both()
        slow = [(ours, self.servers[0]), (theirs, self.servers[1])]
        latest, histories, graphs = [], [], []
        for connection, _ in slow:
            connection.call("CONFIG", "SET", "latency-monitor-threshold", "50")
            for protocol in ("2", "3"):
                connection.call("HELLO", protocol)
                connection.call("DEBUG", "SLEEP", "0.05")
            latest.append(self.slowest_commands(connection))
            histories.append(connection.call("LATENCY", "HISTORY", "command"))
            graphs.append(connection.call("LATENCY", "GRAPH", "command"))
            connection.call("CONFIG", "SET", "latency-monitor-threshold", "0")
            kinds = len(connection.call("LATENCY", "LATEST"))
            self.assertEqual(connection.call("LATENCY", "RESET"), kinds)
            self.assertEqual(connection.call("LATENCY", "LATEST"), [])
            self.assertIsInstance(connection.call("LATENCY", "DOCTOR"), bytes)
        for name, stamp, last, longest in latest:
            self.assertEqual(name, b"command")
            self.assertLess(abs(stamp - time.time()), 60)
            self.assertTrue(50 <= last <= longest < 5000, (last, longest))
        for history in histories:
            for stamp, duration in history:
                self.assertLess(abs(stamp - time.time()), 60)
                self.assertGreaterEqual(duration, 50)
        # Numbers and ages apart, the drawings are the same when there is one sample.
        if len(histories[0]) == len(histories[1]) == 1:
            ours, theirs = (re.sub(rb"\d+", b"0", graph) for graph in graphs)
            self.assertEqual(ours, theirs)

    def test_histograms_have_the_shapes_of_redis(self):
        replies, stats = [], []
        for connection in self.connect_both():
            connection.call("HELLO", "3")
            connection.call("CONFIG", "RESETSTAT")
            for _ in range(50):
                connection.call("GET", "k")
                connection.call("CLIENT", "ID")
            connection.call("DEBUG", "SLEEP", "0.2")
            replies.append(connection.call("LATENCY", "HISTOGRAM", "get", "client", "client|id"))
            stats.append(connection.call("INFO", "latencystats").decode())
        self.assertEqual(*(sorted(reply) for reply in replies))
        # Redis' own steps: powers of two of 1.024 microseconds, as its histogram rounds them.
        steps = {(1024 << i) * 129 // 128 // 1000 for i in range(30)}
        for reply in replies:
            for histogram in reply.values():
                self.assertEqual(histogram[b"calls"], 50)
                counts = histogram[b"histogram_usec"]
                self.assertLessEqual(set(counts), steps)
                self.assertEqual(list(counts.values()), sorted(counts.values()))
                self.assertEqual(max(counts.values()), 50)
        for text in stats:
            line = re.search(r"latency_percentiles_usec_get:(.*)\r", text)[1]
            self.assertRegex(line, r"^p50=\d+\.\d{3},p99=\d+\.\d{3},p99\.9=\d+\.\d{3}$")
            self.assertRegex(text, r"latency_percentiles_usec_client\|id:")
        sleep = re.search(r"latency_percentiles_usec_debug.*:p50=([\d.]+)", stats[0])[1]
        # A busy machine may let it sleep longer.
        self.assertTrue(195_000 < float(sleep) < 30_000_000, sleep)

    def test_what_a_server_without_scripts_says_is_what_redis_says(self):
        commands = """function list;function list x;function list libraryname
            function list libraryname a;function list withcode withcode;function stats
            function flush;function flush async;function flush x;function flush a b
            script exists a b;script exists;script flush;script flush sync;script flush x
            script flush a b;debug error ONE;debug protocol x;debug populate 3;get key:2
            debug populate 2 pre;get pre:1;debug populate 2 big 20;get big:1;debug populate x
            debug populate -1;debug object none;debug set-active-expire 0
            debug set-active-expire 1;debug change-repl-id;debug replybuffer resizing 0
            debug replybuffer peak-reset-time never;debug replybuffer peak-reset-time x
            memory doctor x;memory usage k samples -1;memory usage none"""
        samples = """string integer double bignum null array set map attrib push verbatim true
            false""".split()
        lines = [line for text in commands.splitlines() for line in text.strip().split(";")]
        lines += [f"debug protocol {sample}" for sample in samples]
        self.servers[1].expect_log("Changing replication IDs")
        ours, theirs = self.connect_both()
        for protocol in ("2", "3"):
            for connection in (ours, theirs):
                connection.call("HELLO", protocol)
            for line in lines:
                # Both read to the PING's reply: an attribute stands before another reply.
                replies = []
                for connection in (ours, theirs):
                    connection.send(encode(*line.split()) + encode("PING", "the end"))
                    replies.append(self.bytes_until(connection, b"$7\r\nthe end\r\n"))
                self.assertEqual(*replies, line)

    def bytes_until(self, connection, end):
        data = b""
        while not data.endswith(end):
            data += connection.socket.recv(1 << 16)
        return data

    def test_memory_stats_have_the_shape_of_redis(self):
        shapes = []
        for connection in self.connect_both():
            connection.call("HELLO", "3")
            connection.call("SET", "k", "v")
            connection.call("SELECT", "3")
            connection.call("SET", "k", "v")
            stats = connection.call("MEMORY", "STATS")
            shapes.append([
                (name, type(value), list(value) if isinstance(value, dict) else None)
                for name, value in stats.items()
            ])
        self.assertEqual(*shapes)

    def test_keys_of_debug_populate_reach_replicas(self):
        leader = self.servers[0]
        replica = self.start_server("--replicaof", f"127.0.0.1 {leader.port}")
        ours, theirs = leader.connect(), replica.connect()
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        ours.call("DEBUG", "POPULATE", "1000", "k", "30")
        wait_until(lambda: theirs.call("DBSIZE") == 1000, what="the replica has the keys")
        self.assertEqual(theirs.call("GET", "k:999"), b"value:999".ljust(30, b"\0"))

    def test_a_replicas_monitor_shows_what_its_leader_sends(self):
        """As in Redis, under the leader's address."""
        leader = self.servers[0]
        leader.expect_log("lost")
        replica = self.start_server("--replicaof", f"127.0.0.1 {leader.port}")
        replica.expect_log("lost|refused")
        monitor, client, follower = replica.connect(), leader.connect(), replica.connect()
        for connection in (monitor, client, follower):
            self.addCleanup(connection.close)
        client.call("CONFIG", "SET", "repl-diskless-sync-delay", "0")
        client.call("SET", "first", "v")
        wait_until(lambda: follower.call("EXISTS", "first") == 1, timeout_s=30)
        monitor.call("MONITOR")
        client.call("SELECT", "2")
        client.call("SET", "k", "v")
        line = b""
        while b"SET" not in line:
            line, _ = monitor.read_reply()
        self.assertEqual(shown(line), (b"2", b'"SET" "k" "v"'))
        self.assertIn(f"127.0.0.1:{leader.port}]".encode(), line)

    def test_a_killed_monitor_is_forgotten(self):
        server = self.servers[0]
        monitor, client = server.connect(), server.connect()
        self.addCleanup(monitor.close)
        self.addCleanup(client.close)
        monitor.call("MONITOR")
        identity = re.search(r"id=(\d+) .*flags=O", client.call("CLIENT", "LIST").decode())[1]
        self.assertEqual(client.call("CLIENT", "KILL", "ID", identity), 1)
        self.assertTrue(monitor.is_closed_by_server())
        wait_until(lambda: "flags=O" not in client.call("CLIENT", "LIST").decode())
        self.assertEqual(client.call("PING"), b"PONG")

    def test_a_monitor_leaves_by_reset(self):
        for client, monitor in zip(self.connect_both(), self.connect_both()):
            monitor.call("MONITOR")
            # The second MONITOR has no reply.
            monitor.send(encode("MONITOR") + encode("RESET"))
            values = []
            while values[-1:] != [b"RESET"]:
                values.append(monitor.read_reply()[0])
            client.call("ECHO", "unseen")
            self.assertEqual(monitor.call("PING"), b"PONG")
            self.assertNotIn("flags=O", client.call("CLIENT", "LIST").decode())

    def test_a_monitor_that_does_not_read_delays_nobody_and_is_closed(self):
        server = self.servers[0]
        server.expect_log("reached its output buffer limit|lines come faster")
        monitor, client = server.connect(), server.connect()
        self.addCleanup(monitor.close)
        self.addCleanup(client.close)
        monitor.call("MONITOR")
        before = server.resident_bytes()
        value = "v" * 100_000
        started = time.monotonic()
        for _ in range(1000):
            client.call("SET", "k", value)
        self.assertLess(time.monotonic() - started, 60)
        wait_until(
            lambda: "flags=O" not in client.call("CLIENT", "LIST").decode(),
            what="the monitor is closed",
        )
        if not SANITIZED:
            self.assertLess(server.resident_bytes() - before, 120 << 20)

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
