#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the commands of bloomery-cluster with a real etcd and simulated servers, also while etcd is
slow or unreachable. cluster_tool_test.cpp tests the tool's errors.
"""

import json
import socketserver
import subprocess
import threading
import time
import unittest

from harness import CLUSTER_TOOL, DEADLINE_S
from harness.etcd import EtcdTest

TOPOLOGY = "bloomery/test/topology"


class ScriptedNode(socketserver.ThreadingTCPServer):
    """A simulated server, which reports the state that the test sets."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, digit):
        super().__init__(("127.0.0.1", 0), Handler)
        self.id = digit * 40
        self.epoch = 1 << 40  # an epoch so high that the tool counts every topology as applied
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        self.thread.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.server_address[1]}"

    def stop(self):
        self.shutdown()
        self.thread.join()
        self.server_close()

    def answer(self, words):
        command = " ".join(words).upper()
        if command == "INFO":
            return "role:master\r\nmaster_repl_offset:5\r\ncluster_enabled:1\r\n"
        if command == "CLUSTER MYID":
            return self.id
        if command == "CLUSTER INFO":
            return f"cluster_state:ok\r\ncluster_current_epoch:{self.epoch}\r\n"
        if command == "DBSIZE":
            return 0
        if command.startswith("CONFIG GET"):
            return [words[2], "0" if words[2].endswith("port") else ""]
        raise AssertionError(command)


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            words = []
            for _ in range(int(line[1:])):
                size = int(self.rfile.readline()[1:])
                words.append(self.rfile.read(size + 2)[:-2].decode())
            self.wfile.write(encode(self.server.answer(words)))


def encode(value):
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, list):
        return b"*%d\r\n" % len(value) + b"".join(map(encode, value))
    return b"$%d\r\n%s\r\n" % (len(value.encode()), value.encode())


class ClusterToolTest(EtcdTest):
    def setUp(self):
        self.etcd = self.start_etcd()

    def node(self, digit):
        node = ScriptedNode(digit)
        self.addCleanup(node.stop)
        self.etcd.control("put", f"bloomery/test/alive/{node.id}", "{}")
        return node

    def run_tool(self, *words, options=()):
        return subprocess.run(
            [CLUSTER_TOOL, "--etcd", ",".join(self.etcd.endpoints), "--cluster", "test", *options,
             *map(str, words)],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip

    def tool(self, *words, options=()):
        done = self.run_tool(*words, options=options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def refused(self, *words, options=()):
        """Runs a command that must fail without changing the topology. Returns its error."""
        before = self.topology()
        done = self.run_tool(*words, options=options)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done)
        self.assertEqual(self.topology(), before)
        prefix = "bloomery-cluster: "
        self.assertTrue(done.stderr.startswith(prefix) and done.stderr.count("\n") == 1, done)
        return done.stderr[len(prefix) : -1]

    def topology(self):
        text = self.etcd.control("get", "--print-value-only", TOPOLOGY)
        return json.loads(text) if text else None

    def create(self, replicas=1, digits="abcdef"):
        nodes = [self.node(digit) for digit in digits]
        self.tool("create", "--replicas", replicas, *(node.address for node in nodes))
        return nodes

    def test_first_nodes_lead_and_all_slots_are_owned(self):
        nodes = self.create()
        shards = self.topology()["shards"]
        self.assertEqual([shard["slots"] for shard in shards.values()],
                         ["0-5460", "5461-10922", "10923-16383"])  # fmt: skip
        self.assertEqual(shards["s2"]["leader"], nodes[1].id)
        self.assertEqual(shards["s2"]["members"], [nodes[1].id, nodes[4].id])
        self.assertEqual(shards["s2"]["insync"], [nodes[1].id])
        self.assertIn("exists already", self.refused("create", nodes[0].address))
        self.assertEqual(self.run_tool("create", "localhost").returncode, 2, "no port")

    def test_status_is_a_table_or_json(self):
        nodes = self.create(replicas=0, digits="ab")
        nodes[1].stop()
        self.etcd.control("del", f"bloomery/test/alive/{nodes[1].id}")
        table = self.tool("status")
        self.assertRegex(table, rf"s1 +0-8191 +{nodes[0].address} +leader +ok")
        self.assertRegex(table, rf"s2 +8192-16383 +{nodes[1].address} +leader +down")
        self.assertIn("no live leader", table)
        status = json.loads(self.tool("status", options=["--json"]))
        self.assertFalse(status["whole"])
        self.assertEqual(status["shards"][0]["nodes"][0]["address"], nodes[0].address)

    def test_etcd_that_is_away_changes_nothing(self):
        node = self.node("a")
        self.etcd.members[0].kill()
        done = self.run_tool("create", node.address)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Connection refused", done.stderr)
        self.etcd.start()
        self.assertIsNone(self.topology())

    def test_slow_etcd_is_waited_for(self):
        node = self.node("a")
        member = self.etcd.members[0]
        member.suspend()
        timer = threading.Timer(2, member.resume)
        timer.start()
        started = time.monotonic()
        self.tool("create", node.address)
        timer.join()
        self.assertGreater(time.monotonic() - started, 1)
        self.assertIsNotNone(self.topology())

    def test_password_file_is_read(self):
        self.etcd.enable_auth("secret")
        path = self.etcd.folder / "password"
        path.write_text("secret\n", encoding="ascii")
        options = ["--user", "bloomery", "--password-file", path]
        done = self.run_tool("status", options=options)
        self.assertIn("no cluster 'test'", done.stderr)
        path.write_text("wrong\n", encoding="ascii")
        done = self.run_tool("status", options=options)
        self.assertIn("authentication failed", done.stderr)


if __name__ == "__main__":
    unittest.main()
