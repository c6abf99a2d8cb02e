#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""TLS as clients meet it: the port, certificates, their reload, and peers that mean no good."""

import socket
import ssl
import subprocess
import tempfile
import time
import unittest

from harness import ServerTest, free_port, wait_until
from resp import Connection, ErrorReply, encode
from tls_files import TlsFiles


class TlsConnection(Connection):
    """A Connection whose socket speaks TLS."""

    def __init__(self, port, context, **options):
        super().__init__(port, **options)
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")


class TlsTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory(prefix="bloomery-tls-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.files = TlsFiles(cls.folder.name)
        cls.files.make_certificate("client")

    def start_tls_server(self, *more, auth="no", plain=True):
        self.tls_port = free_port()
        options = self.files.server_options(self.tls_port, *more, auth=auth)
        if not plain:
            options += ["--port", 0]
        server = self.start_server(*options)
        return server

    def connect_tls(self, *, context=None, port=None, **identity):
        context = context or self.files.client_context(**identity)
        connection = TlsConnection(port or self.tls_port, context)
        self.addCleanup(connection.close)
        return connection

    def redis_cli(self, *words, port=None, **identity):
        options = self.files.client_options(**identity)
        return self.run_client(
            ["redis-cli", "-p", port or self.tls_port, *options, *words], timeout_s=30
        ).strip()


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
        with self.assertRaises(OSError):
            server.connect().close()

    def test_large_values_and_pipelines(self):
        self.start_tls_server("--io-threads", 2)
        client = self.connect_tls()
        large = bytes(range(256)) * (20_000_000 // 256)
        self.assertEqual(client.call("SET", "large", large), b"OK")
        self.assertEqual(client.call("GET", "large"), large)
        count = 20_000
        client.send(b"".join(encode("ECHO", b"%d" % i) for i in range(count)))
        for i in range(count):
            self.assertEqual(client.read_reply()[0], b"%d" % i)

    def test_pieces_of_every_size(self):
        """Records of one byte, and commands that end in the midst of a record."""
        self.start_tls_server()
        client = self.connect_tls()
        command = encode("ECHO", "x" * 100)
        for byte in command:
            client.send(bytes([byte]))
        self.assertEqual(client.read_reply()[0], b"x" * 100)
        many = command * 700
        for size in (1000, 16_384, 16_385, 65_536, 70_000):
            for begin in range(0, len(many), size):
                client.send(many[begin : begin + size])
            for _ in range(700):
                self.assertEqual(client.read_reply()[0], b"x" * 100)

    def test_a_client_that_reads_slowly(self):
        self.start_tls_server()
        client = self.connect_tls()
        self.assertEqual(client.call("SET", "key", "x" * 1_000_000), b"OK")
        client.send(encode("GET", "key") * 60)
        time.sleep(0.5)
        for _ in range(60):
            self.assertEqual(len(client.read_reply()[0]), 1_000_000)

    def test_the_end_is_told_both_ways(self):
        server = self.start_tls_server()
        client = self.connect_tls()
        self.assertEqual(client.call("PING"), b"PONG")
        # Sends close_notify and waits for the server's.
        client.socket.unwrap()
        client = self.connect_tls()
        self.assertEqual(client.call("QUIT"), b"OK")
        self.assertEqual(client.socket.recv(1), b"", "an end without close_notify would raise")
        client = self.connect_tls()
        self.assertEqual(client.call("PING"), b"PONG")
        with server.connect() as plain:
            plain.send(encode("SHUTDOWN", "NOSAVE"))
            self.assertEqual(client.socket.recv(1), b"")

    def test_the_versions_of_today_only(self):
        self.start_tls_server()
        for name, options in (("TLSv1.2", ["-tls1_2"]), ("TLSv1.3", ["-tls1_3"])):
            self.assertIn(f"Protocol version: {name}", self.s_client(*options))
        for option in ("-tls1", "-tls1_1"):
            self.assertIn("alert", self.s_client(option, "-cipher", "ALL:@SECLEVEL=0"))

    def s_client(self, *options, stdin=b""):
        done = subprocess.run(
            ["openssl", "s_client", "-brief", "-connect", f"127.0.0.1:{self.tls_port}", *options],
            input=stdin, capture_output=True, timeout=30, check=False,
        )  # fmt: skip
        return (done.stdout + done.stderr).decode(errors="replace")


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
            # They change places in one go.
            self.assertEqual(
                plain.call("CONFIG", "SET", "port", port, "tls-port", server.port), b"OK"
            )
            self.assertEqual(self.redis_cli("PING", port=server.port), "PONG")
            with Connection(port) as moved:
                self.assertEqual(moved.call("PING"), b"PONG")

    def test_no_certificate_no_port(self):
        server = self.start_server()
        server.expect_log("No tls-cert-file configured")
        with server.connect() as plain:
            port = free_port()
            self.assertEqual(
                plain.call("CONFIG", "SET", "tls-port", port),
                ErrorReply(
                    "ERR CONFIG SET failed (possibly related to argument 'tls-port') - "
                    "Unable to update TLS configuration. Check server logs."
                ),
            )
            self.assertEqual(plain.call("CONFIG", "GET", "tls-port"), [b"tls-port", b"0"])
            with self.assertRaises(OSError):
                Connection(port).close()


class HostilePeerTest(TlsTest):
    def test_plain_text_on_the_encrypted_port_and_back(self):
        server = self.start_tls_server()
        with Connection(self.tls_port) as client:
            client.send(encode("PING"))
            self.assertEqual(client.socket.recv(100), b"")
        context = self.files.client_context()
        with self.assertRaises((ssl.SSLError, OSError)):
            raw = socket.create_connection(("127.0.0.1", server.port), timeout=2)
            self.addCleanup(raw.close)
            context.wrap_socket(raw, server_hostname="localhost")
        self.assertEqual(self.redis_cli("PING"), "PONG")
        with server.connect() as plain:
            self.assertEqual(plain.call("PING"), b"PONG")


if __name__ == "__main__":
    unittest.main()
