#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""TLS as clients meet it: the port, certificates and their reload."""

import subprocess
import time
import unittest

from harness import free_port, wait_until
from resp import Connection, ErrorReply, encode
from tls_harness import TlsTest


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
        self.assertEqual(server.wait_for_exit(), 0)

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


class ReloadTest(TlsTest):
    """CONFIG SET of certificates while connections are open."""

    def setUp(self):
        super().setUp()
        self.server = self.start_tls_server()
        self.plain = self.server.connect()
        self.addCleanup(self.plain.close)
        self.files.make_certificate("next")

    def set_config(self, *words):
        return self.plain.call("CONFIG", "SET", *words)

    def shown_name(self):
        """The common name of the certificate that a new connection sees."""
        client = self.connect_tls()
        self.assertEqual(client.call("PING"), b"PONG")
        return dict(part[0] for part in client.socket.getpeercert()["subject"])["commonName"]

    def test_another_certificate(self):
        client = self.connect_tls()
        self.assertEqual(client.call("PING"), b"PONG")
        self.assertEqual(self.shown_name(), "server")
        words = ["tls-cert-file", self.files.path("next.crt")]
        words += ["tls-key-file", self.files.path("next.key")]
        self.assertEqual(self.set_config(*words), b"OK")
        self.assertEqual(self.shown_name(), "next")
        self.assertEqual(client.call("PING"), b"PONG", "who is connected stays so")

    def test_what_cannot_be_used_changes_nothing(self):
        self.server.expect_log("Failed to|Invalid tls-protocols|must be specified")
        before = self.plain.call("CONFIG", "GET", "tls-*")
        client = self.connect_tls()
        with open(self.files.path("garbage"), "w", encoding="ascii") as garbage:
            garbage.write("no certificate")
        for words in (
            ["tls-cert-file", self.files.path("garbage")],
            ["tls-cert-file", self.files.path("absent")],
            ["tls-cert-file", self.files.path("next.crt")],  # the key is another's
            ["tls-key-file", self.files.path("garbage")],
            ["tls-ca-cert-file", self.files.path("garbage")],
            ["tls-dh-params-file", self.files.path("garbage")],
            ["tls-protocols", "SSLv3"],
            ["tls-ciphers", "NOBODY-KNOWS"],
            ["tls-ciphersuites", "TLS_NONE"],
            ["tls-ca-cert-file", "", "tls-auth-clients", "yes"],
            ["maxclients", 77, "tls-cert-file", self.files.path("absent")],
        ):
            reply = self.set_config(*words)
            self.assertIsInstance(reply, ErrorReply, words)
            self.assertIn("Unable to update TLS configuration", reply.text)
            self.assertEqual(self.plain.call("CONFIG", "GET", "tls-*"), before)
        self.assertEqual(self.plain.call("CONFIG", "GET", "maxclients")[1], b"10000")
        self.assertEqual(self.shown_name(), "server")
        self.assertEqual(client.call("PING"), b"PONG")

    def test_an_encrypted_key(self):
        self.server.expect_log("Failed to load private key")
        self.files.encrypt_key("next", "secret")
        words = ["tls-cert-file", self.files.path("next.crt")]
        words += ["tls-key-file", self.files.path("next-encrypted.key")]
        self.assertIsInstance(self.set_config(*words), ErrorReply)
        self.assertEqual(self.set_config(*words, "tls-key-file-pass", "secret"), b"OK")
        self.assertEqual(self.shown_name(), "next")

    def test_replies_are_those_of_redis(self):
        port = free_port()
        redis = self.start_redis(*self.files.server_options(port))
        redis.expect_log("Failed|tls|TLS")
        self.server.expect_log("Failed|tls|TLS")
        with redis.connect() as oracle:
            for words in (
                ["tls-cert-file", "/absent"],
                ["tls-port", 70_000],
                ["tls-port", "x"],
                ["tls-auth-clients", "perhaps"],
                ["tls-session-cache-size", -1],
                ["tls-replication", 2],
                ["tls-protocols", "TLSv1.3"],
                ["tls-protocols", "TLSv9"],
                ["tls-key-file-pass", "x", "tls-key-file-pass", "y"],
            ):
                self.assertEqual(
                    self.plain.call_raw("CONFIG", "SET", *words),
                    oracle.call_raw("CONFIG", "SET", *words),
                    words,
                )
            names = [
                name for name in oracle.call("CONFIG", "GET", "tls-*")[::2]
                if not name.endswith((b"-file", b"-port"))
            ]  # fmt: skip
            for name in names:
                words = ("CONFIG", "GET", name)
                self.assertEqual(self.plain.call_raw(*words), oracle.call_raw(*words))


if __name__ == "__main__":
    unittest.main()
