#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests common Redis tools: the Prometheus exporter redis_exporter, and a web page that browses
keys."""

import json
import unittest
import urllib.error
import urllib.parse
import urllib.request

from harness import DEADLINE_S, free_port, wait_until
from harness.node import MODULES, node
from harness.web_tools import UNKNOWN_TYPE, ToolsTest


class ExporterTest(ToolsTest):
    def test_figures_of_a_server(self):
        server = self.start_server("--maxmemory", "100mb")
        self.fill(server)
        metrics, errors = self.metrics_of(
            server, "-check-keys", "*", "-export-client-list", "-include-system-metrics"
        )
        self.assertEqual(errors, [UNKNOWN_TYPE])
        self.assertEqual(metrics["redis_up"], "1")
        self.assertEqual(metrics["redis_exporter_last_scrape_error{err=\"\"}"], "0")
        self.assertEqual(metrics['redis_db_keys{db="db0"}'], "3")
        self.assertEqual(metrics['redis_db_keys_expiring{db="db0"}'], "1")
        self.assertEqual(metrics["redis_memory_max_bytes"], "1.048576e+08")
        self.assertEqual(metrics['redis_key_size{db="db0",key="tree:b"}'], "3")
        for name in (
            "redis_uptime_in_seconds", "redis_connected_clients", "redis_blocked_clients",
            "redis_memory_used_bytes", "redis_memory_used_rss_bytes", "redis_process_id",
            "redis_commands_processed_total", "redis_keyspace_hits_total",
            "redis_evicted_keys_total", "redis_expired_keys_total", "redis_slowlog_length",
            "redis_slowlog_last_id",
            "redis_net_input_bytes_total", "redis_rejected_connections_total",
            "redis_latest_fork_seconds", "redis_loading_dump_file", "redis_aof_enabled",
            "redis_cpu_user_seconds_total", "redis_config_maxclients", "redis_connected_slaves",
            'redis_commands_total{cmd="bf.add"}', "redis_master_repl_offset",
            'redis_commands_duration_seconds_total{cmd="bf.add"}',
            "redis_total_system_memory_bytes", "redis_start_time_seconds",
        ):  # fmt: skip
            self.assertIn(name, metrics)
        self.assertTrue(any(name.startswith("redis_connected_client") for name in metrics))

    def test_a_scrape_has_no_error(self):
        leader = self.start_server(
            "--appendonly", "yes", "--maxmemory", "100mb", "--repl-diskless-sync-delay", "0"
        )
        replica = self.start_server("--replicaof", f"127.0.0.1 {leader.port}")
        self.fill(leader)
        with leader.connect() as client:
            client.call("BGSAVE")
            client.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
            client.call("NOSUCH")
        replica.wait_for_log("DB loaded from the snapshot")
        for server in (leader, replica):
            metrics, errors = self.metrics_of(server)
            self.assertEqual(errors, [])
            self.assertEqual(metrics["redis_exporter_last_scrape_error{err=\"\"}"], "0")
        links = [name for name in metrics if name.startswith("redis_master_link_up")]
        self.assertEqual([metrics[name] for name in links], ["1"])

    def test_figures_of_a_cluster_of_one(self):
        server = self.start_server("--cluster-enabled", "emulated")
        metrics, errors = self.metrics_of(server, "-is-cluster")
        self.assertEqual(errors, [])
        self.assertEqual(metrics["redis_cluster_enabled"], "1")
        self.assertEqual(metrics["redis_cluster_slots_ok"], "16384")
        self.assertEqual(metrics["redis_cluster_known_nodes"], "1")


class CommanderTest(ToolsTest):
    def setUp(self):
        folder = MODULES / "node_modules_redis_commander"
        self.assertTrue((folder / ".installed").exists(), "run scripts/install_node_packages.sh")
        self.server = self.start_server()
        self.fill(self.server)
        port = free_port()
        self.root = f"http://127.0.0.1:{port}"
        self.connection = f"R:127.0.0.1:{self.server.port}:0"
        program = folder / "node_modules" / "redis-commander" / "bin" / "redis-commander.js"
        self.start_tool(
            [node(), program, "--redis-host", "127.0.0.1", "--redis-port", self.server.port,
             "--address", "127.0.0.1", "--port", port, "--noload", "--nosave"],
            self.root,
        )  # fmt: skip

        def is_connected():
            return self.fetch("/apiv2/connection") is True

        wait_until(is_connected, what="redis-commander's connection")

    def fetch(self, path, form=None, method=None):
        data = urllib.parse.urlencode(form).encode() if form is not None else None
        request = urllib.request.Request(self.root + path, data=data, method=method)
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as page:
            text = page.read().decode()
        try:
            return json.loads(text)
        except ValueError:
            return text

    def test_browsing(self):
        tree = self.fetch(f"/apiv2/keystree/{self.connection}")["data"]
        shown = {row["text"]: row["rel"] for row in tree if "rel" in row}
        self.assertEqual(shown["a"], "string")
        self.assertEqual(shown["f"], "MBbloom--")
        key = self.fetch(f"/apiv2/key/{self.connection}/tree:b")
        self.assertEqual((key["type"], key["value"]), ("string", "two"))
        self.assertLessEqual(key["ttl"], 1000)
        info = self.fetch("/apiv2/server/info")["data"][0]["info"]
        self.assertIn("Redis version", [row["key"] for row in info])

    def test_changing_keys(self):
        path = f"/apiv2/key/{self.connection}/made"
        self.fetch(path, {"keyType": "string", "stringValue": "by hand"})
        self.assertEqual(self.fetch(path)["value"], "by hand")
        self.fetch(path + "?action=delete", {})
        with self.server.connect() as client:
            self.assertEqual(client.call("EXISTS", "made"), 0)

    def test_its_command_line(self):
        def run(command):
            return self.fetch(f"/apiv2/exec/{self.connection}", {"cmd": command})["data"]

        self.assertEqual(run("BF.ADD f other"), 1)
        self.assertEqual(run("BF.EXISTS f other"), 1)
        self.assertIn("unknown command 'hset'", run("HSET h a b"))


if __name__ == "__main__":
    unittest.main()
