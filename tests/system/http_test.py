#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The admin HTTP port: probes, metrics, passwords, TLS, hostile clients, Prometheus' own tools."""

import base64
import contextlib
import http.client
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import unittest

from harness import ServerTest, free_port, wait_until
from tls_harness import TlsTest
from tools_test import ToolsTest


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


class HttpTest(ServerTest):
    def start_http_server(self, *options):
        self.http_port = free_port()
        return self.start_server("--http-port", self.http_port, *options)

    def connect_http(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=30)
        self.addCleanup(connection.close)
        return connection

    def get(self, path, *, method="GET", headers=None):
        """Status and text."""
        connection = self.connect_http()
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.read().decode()

    def metrics(self):
        status, text = self.get("/metrics")
        self.assertEqual(status, 200, text)
        lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}


class ProbesTest(HttpTest):
    def test_nothing_listens_without_a_port(self):
        server = self.start_server()
        listening = subprocess.run(
            ["ss", "-Hltnp"], stdout=subprocess.PIPE, check=True
        ).stdout.decode()
        own = [line for line in listening.splitlines() if f"pid={server.pid}," in line]
        self.assertTrue(all(f":{server.port} " in line for line in own), own)

    def test_a_replica_is_ready_while_it_hears_its_leader(self):
        leader = self.start_server("--repl-ping-replica-period", 1)
        self.start_http_server("--http-ready-max-lag", 2, "--replicaof", f"127.0.0.1 {leader.port}")
        wait_until(lambda: self.get("/readyz")[0] == 200, what="the replica is ready")
        leader.suspend()
        wait_until(lambda: self.get("/readyz")[0] == 503, what="the replica lags")
        self.assertIn("http-ready-max-lag", self.get("/readyz")[1])
        self.assertEqual(self.get("/healthz")[0], 200)
        leader.resume()
        wait_until(lambda: self.get("/readyz")[0] == 200, what="the replica has caught up")

    def test_a_replica_without_its_leaders_data_is_not_ready(self):
        server = self.start_http_server("--replicaof", f"127.0.0.1 {free_port()}")
        server.expect_log("leader")
        self.assertEqual(self.get("/readyz")[0], 503)

    def test_a_thread_that_does_not_answer_is_ill(self):
        server = self.start_http_server("--enable-debug-command", "yes")
        with server.connect() as client:
            client.send(b"DEBUG SLEEP 17\r\n")
            wait_until(lambda: self.get("/healthz")[0] == 503, 17, "the thread is called ill")
            client.read_reply()
        wait_until(lambda: self.get("/healthz")[0] == 200, what="the thread is well again")


class HostileTest(HttpTest):
    def dial(self):
        connection = socket.create_connection(("127.0.0.1", self.http_port), timeout=30)
        self.addCleanup(connection.close)
        return connection

    def test_slow_clients_hold_up_nobody(self):
        server = self.start_http_server()
        for _ in range(300):
            self.dial().send(b"GET / HT")
        begun = time.monotonic()
        self.assertEqual(self.get("/healthz")[0], 200)
        with server.connect() as client:
            self.assertEqual(client.call("PING"), b"PONG")
        self.assertLess(time.monotonic() - begun, 5)

    def test_a_thousand_connections_take_bounded_room(self):
        server = self.start_http_server()
        before = server.resident_bytes()
        for i in range(1000):
            client = self.dial()
            if i % 2 == 0:
                client.send(b"GET /metrics HTTP/1.1\r\nHost: a")
        self.assertEqual(self.get("/healthz")[0], 200)
        self.assertEqual(self.get("/metrics")[0], 200)
        with server.connect() as client:
            self.assertEqual(client.call("PING"), b"PONG")
        descriptors = len(list(pathlib.Path(f"/proc/{server.pid}/fd").iterdir()))
        self.assertLess(descriptors, 250)
        self.assertLess(server.resident_bytes() - before, 32 << 20)

    def test_a_request_that_drips_in_is_given_up(self):
        self.start_http_server()
        client = self.dial()
        client.send(b"GET /healthz HTTP/1.1\r\nA: ")
        begun = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - begun < 30:
                client.send(b"a")
                client.settimeout(0.2)
                try:
                    if client.recv(1000) == b"":
                        break
                except TimeoutError:
                    pass
        self.assertLess(time.monotonic() - begun, 20)
        self.assertGreater(time.monotonic() - begun, 5)

    def test_readers_that_do_not_read_cost_bounded_memory(self):
        server = self.start_http_server()
        with server.connect() as client:
            for i in range(60):
                client.call("BF.ADD", f"filter:{i}", "x")
        before = server.resident_bytes()
        for _ in range(100):
            client = self.dial()
            client.setblocking(False)
            with self.subTest(), server.connect() as other:
                try:
                    while True:
                        client.send(b"GET /metrics HTTP/1.1\r\n\r\n" * 100)
                except (BlockingIOError, ConnectionError):
                    pass
                self.assertEqual(other.call("PING"), b"PONG")
        self.assertEqual(self.get("/healthz")[0], 200)
        self.assertLess(server.resident_bytes() - before, 64 << 20)

    def test_a_stop_waits_for_no_client(self):
        server = self.start_http_server()
        self.dial().send(b"GET / HT")
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        server.wait_for_exit()
        self.assertLess(time.monotonic() - begun, 5)


class TlsHttpTest(TlsTest):
    def test_half_handshakes_hold_up_nobody(self):
        port = free_port()
        self.start_tls_server("--http-port", port, "--http-tls", "yes")
        for i in range(200):
            client = socket.create_connection(("127.0.0.1", port), timeout=30)
            self.addCleanup(client.close)
            client.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[: i % 12])
        begun = time.monotonic()
        connection = http.client.HTTPSConnection(
            "localhost", port, context=self.files.client_context(), timeout=30
        )
        self.addCleanup(connection.close)
        connection.request("GET", "/healthz")
        self.assertEqual(connection.getresponse().status, 200)
        self.assertLess(time.monotonic() - begun, 5)

    def test_https_with_the_servers_certificate(self):
        port = free_port()
        self.start_tls_server("--http-port", port, "--http-tls", "yes")
        context = self.files.client_context()
        connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=30)
        self.addCleanup(connection.close)
        for _ in range(3):
            connection.request("GET", "/metrics")
            response = connection.getresponse()
            self.assertEqual(response.status, 200)
            self.assertIn(b"\nredis_up 1\n", response.read())
        plain = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.addCleanup(plain.close)
        with self.assertRaises((http.client.HTTPException, ConnectionError)):
            plain.request("GET", "/healthz")
            plain.getresponse()


class PrometheusTest(HttpTest, ToolsTest):
    # Of the exporter itself; or of one thread among several.
    NOT_OURS = ("redis_exporter_", "redis_target_", "redis_last_key_groups_", "redis_cpu_sys_main",
                "redis_cpu_user_main")  # fmt: skip
    # Whose names promtool objects to.
    ABBREVIATED = ("_duration_sec",)

    def test_promtool_accepts_the_metrics(self):
        server = self.start_http_server()
        with server.connect() as client:
            client.call("SET", "a", "1")
            client.call("BF.ADD", b'odd"\\\n\xff', "x")
            client.call("NOSUCH")
        _, text = self.get("/metrics")
        promtool = shutil.which("promtool")
        self.assertIsNotNone(promtool, "promtool is missing: run scripts/install_deps.sh test")
        self.assertEqual(self.run_client([promtool, "check", "metrics"], stdin=text.encode()), "")

    def test_names_are_the_exporters(self):
        server = self.start_http_server("--appendonly", "yes")
        with server.connect() as client:
            client.call("SET", "a", "1", "EX", "100")
        scraped, _ = self.metrics_of(server, "-include-system-metrics")
        wanted = {name.partition("{")[0] for name in scraped if name.startswith("redis_")}
        ours = {name.partition("{")[0] for name in self.metrics()}
        missing = {
            name
            for name in wanted - ours
            if not name.startswith(self.NOT_OURS) and not name.endswith(self.ABBREVIATED)
        }
        self.assertEqual(missing, set())


if __name__ == "__main__":
    unittest.main()
