#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests Redis clients over TLS. node_clients_test.py tests the Node.js clients."""

import unittest

import redis
from harness import DEADLINE_S
from harness.tls import TlsTest


class TlsClientsTest(TlsTest):
    def test_redis_benchmark(self):
        self.start_tls_server("--io-threads", 2)
        options = ["-p", self.tls_port, *self.files.client_options(), "-n", 5000, "-q"]
        for more in (["-t", "set,get"], ["-t", "ping", "-P", 16], ["-t", "get", "-d", 100_000]):
            output = self.run_client(["redis-benchmark", *options, *more])
            self.assertNotIn("rror", output)

    def test_redis_cli_with_a_certificate(self):
        self.start_tls_server(auth="yes")
        self.assertEqual(self.redis_cli("PING", certificate="client"), "PONG")

    def test_python(self):
        self.start_tls_server(auth="yes")
        client = redis.Redis(
            host="127.0.0.1", port=self.tls_port, ssl=True,
            ssl_ca_certs=self.files.path("ca.crt"), ssl_certfile=self.files.path("client.crt"),
            ssl_keyfile=self.files.path("client.key"),
        )  # fmt: skip
        self.addCleanup(client.close)
        self.assertTrue(client.ping())
        self.assertEqual(client.bf().add("filter", "item"), 1)
        with client.pipeline() as pipeline:
            for i in range(1000):
                pipeline.setbit("bits", i, 1)
            self.assertEqual(pipeline.execute(), [0] * 1000)
        with client.pubsub() as subscriber:
            subscriber.subscribe("channel")
            self.assertEqual(subscriber.get_message(timeout=DEADLINE_S)["type"], "subscribe")
            client.publish("channel", "message")
            self.assertEqual(subscriber.get_message(timeout=DEADLINE_S)["data"], b"message")


if __name__ == "__main__":
    unittest.main()
