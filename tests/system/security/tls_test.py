#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests TLS as clients see it: the port, certificates, and their reload."""

import contextlib
import unittest

from harness import free_port, wait_until
from harness.resp import Connection, encode
from harness.tls import TlsTest


class PortTest(TlsTest):
    def test_redis_cli(self):
        self.start_tls_server()
        self.assertEqual(self.redis_cli("PING"), "PONG")
        self.assertEqual(self.redis_cli("BF.ADD", "filter", "item"), "1")
        self.assertEqual(self.redis_cli("BF.EXISTS", "filter", "item"), "1")

    def test_plain_and_encrypted_side_by_side(self):
        server = self.start_tls_server()
        with server.connect() as plain:
            encrypted = self.connect_tls()
            self.assertEqual(plain.call("SET", "key", "value"), b"OK")
            self.assertEqual(encrypted.call("GET", "key"), b"value")
            self.assertEqual(encrypted.call("SUBSCRIBE", "channel")[0], b"subscribe")
            self.assertEqual(plain.call("PUBLISH", "channel", "message"), 1)
            self.assertEqual(encrypted.read_reply()[0], [b"message", b"channel", b"message"])

    def test_only_encrypted(self):
        server = self.start_tls_server(plain=False)
        self.assertEqual(self.redis_cli("PING"), "PONG")
        self.assertIn(f"tcp_port:{self.tls_port}", self.redis_cli("INFO", "server"))
        with self.assertRaises(OSError):
            server.connect().close()

    def test_both_sides_send_close_notify(self):
        server = self.start_tls_server()
        client = self.connect_tls()
        self.assertEqual(client.call("PING"), b"PONG")
        # unwrap() sends close_notify and waits for the server's close_notify.
        client.socket.unwrap()
        client = self.connect_tls()
        self.assertEqual(client.call("QUIT"), b"OK")
        self.assertEqual(client.socket.recv(1), b"", "an end without close_notify would raise")
        client = self.connect_tls()
        self.assertEqual(client.call("PING"), b"PONG")
        with server.connect() as plain:
            plain.send(encode("SHUTDOWN", "NOSAVE"))
            self.assertEqual(client.socket.recv(1), b"")
        self.assertEqual(server.wait_for_exit(), 0)


class HandshakeLogTest(TlsTest):
    def test_failed_handshakes_are_logged_with_reason(self):
        server = self.start_tls_server()
        for _ in range(3):
            with Connection(self.tls_port) as plain:
                plain.send(b"PING\r\n")
                # The server may send a TLS alert before it closes the connection.
                with contextlib.suppress(ConnectionResetError):
                    while plain.socket.recv(4096):
                        pass
        line = r"Error accepting a client connection: [a-z ]+.* \(addr=127\.0\.0\.1:\d+ "
        server.wait_for_log(line)
        # The server logs one line for all failed handshakes within ten seconds.
        self.assertEqual(sum("Error accepting a client" in one for one in server.log), 1)


class ConfigSetTest(TlsTest):
    def test_the_port_moves_and_ends(self):
        server = self.start_tls_server()
        client = self.connect_tls()
        with server.connect() as plain:
            port = free_port()
            self.assertEqual(plain.call("CONFIG", "SET", "tls-port", port), b"OK")
            wait_until(lambda: self.redis_cli("PING", port=port) == "PONG")
            self.assertEqual(client.call("PING"), b"PONG", "who is connected stays so")
            self.assertEqual(plain.call("CONFIG", "SET", "tls-port", 0), b"OK")
            with self.assertRaises(OSError):
                Connection(port).close()
            # One CONFIG SET swaps the plain and the TLS port.
            self.assertEqual(
                plain.call("CONFIG", "SET", "port", port, "tls-port", server.port), b"OK"
            )
            self.assertEqual(self.redis_cli("PING", port=server.port), "PONG")
            with Connection(port) as moved:
                self.assertEqual(moved.call("PING"), b"PONG")


class ReloadTest(TlsTest):
    """Tests of CONFIG SET of certificates while connections are open."""

    def setUp(self):
        super().setUp()
        self.server = self.start_tls_server()
        self.plain = self.server.connect()
        self.addCleanup(self.plain.close)
        self.files.make_certificate("next")

    def set_config(self, *words):
        return self.plain.call("CONFIG", "SET", *words)

    def printable_name(self):
        """Returns the common name of the certificate that the server sends on a new connection."""
        client = self.connect_tls()
        self.assertEqual(client.call("PING"), b"PONG")
        return dict(part[0] for part in client.socket.getpeercert()["subject"])["commonName"]

    def test_another_certificate(self):
        client = self.connect_tls()
        self.assertEqual(client.call("PING"), b"PONG")
        self.assertEqual(self.printable_name(), "server")
        words = ["tls-cert-file", self.files.path("next.crt")]
        words += ["tls-key-file", self.files.path("next.key")]
        self.assertEqual(self.set_config(*words), b"OK")
        self.assertEqual(self.printable_name(), "next")
        self.assertEqual(client.call("PING"), b"PONG", "who is connected stays so")


if __name__ == "__main__":
    unittest.main()
