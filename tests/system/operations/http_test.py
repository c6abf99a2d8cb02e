#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests the admin HTTP port: with a hanging server thread, slow clients, TLS, and Prometheus."""

import http.client
import shutil
import socket
import time
import unittest

from harness import DEADLINE_S, ServerTest, free_port, wait_until
from harness.tls import TlsTest
from harness.web_tools import ToolsTest


class HttpTest(ServerTest):
    def start_http_server(self, *options):
        self.http_port = free_port()
        return self.start_server("--http-port", self.http_port, *options)

    def connect_http(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=DEADLINE_S)
        self.addCleanup(connection.close)
        return connection

    def get(self, path):
        """Requests a path, and returns the status and the text of the response."""
        connection = self.connect_http()
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()

    def metrics(self):
        status, text = self.get("/metrics")
        self.assertEqual(status, 200, text)
        lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}


class ProbesTest(HttpTest):
    def test_stuck_thread_fails_healthz(self):
        server = self.start_http_server("--enable-debug-command", "yes")
        with server.connect() as client:

            def is_called_ill():
                """/healthz fails if a server thread does not respond for 15 s. On a busy machine
                DEBUG SLEEP may end before the first request, so wait_until() repeats this function.
                """
                client.send(b"DEBUG SLEEP 18\r\n")
                found = False
                while not client.has_reply(0.02):
                    found = found or self.get("/healthz")[0] == 503
                client.read_reply()
                return found

            wait_until(is_called_ill, "the thread is called ill", timeout_s=180)
        wait_until(lambda: self.get("/healthz")[0] == 200, what="the thread is well again")


class HostileTest(HttpTest):
    def dial(self):
        connection = socket.create_connection(("127.0.0.1", self.http_port), timeout=DEADLINE_S)
        self.addCleanup(connection.close)
        return connection

    def test_slow_request_is_closed(self):
        self.start_http_server()
        client = self.dial()
        client.send(b"GET /healthz HTTP/1.1\r\nA: ")
        begun = time.monotonic()
        client.settimeout(0.2)

        def is_closed():
            try:
                client.send(b"a")
                return client.recv(1000) == b""
            except TimeoutError:
                return False
            except ConnectionError:
                return True

        wait_until(is_closed, "the end of the connection")
        self.assertGreater(time.monotonic() - begun, 5)


class TlsHttpTest(TlsTest):
    def test_https_with_the_servers_certificate(self):
        port = free_port()
        self.start_tls_server("--http-port", port, "--http-tls", "yes")
        context = self.files.client_context()
        connection = http.client.HTTPSConnection(
            "localhost", port, context=context, timeout=DEADLINE_S
        )
        self.addCleanup(connection.close)
        for _ in range(3):
            connection.request("GET", "/metrics")
            response = connection.getresponse()
            self.assertEqual(response.status, 200)
            self.assertIn(b"\nredis_up 1\n", response.read())
        plain = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
        self.addCleanup(plain.close)
        with self.assertRaises((http.client.HTTPException, ConnectionError)):
            plain.request("GET", "/healthz")
            plain.getresponse()


class PrometheusTest(HttpTest, ToolsTest):
    # Prefixes of metrics that only prometheus-redis-exporter has: metrics about the exporter
    # itself, and the CPU time of Redis' main thread.
    NOT_OURS = ("redis_exporter_", "redis_target_", "redis_last_key_groups_", "redis_cpu_sys_main",
                "redis_cpu_user_main")  # fmt: skip promtool rejects these names.
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
