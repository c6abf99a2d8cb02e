#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Whom a TLS port lets in, and what peers can do that mean no good."""

import contextlib
import socket
import ssl
import time
import unittest

from harness import wait_until
from resp import Connection, encode
from tls_harness import TlsTest

# A ClientHello's first bytes: the header of a record of 512 bytes, and no more.
HALF_HELLO = bytes.fromhex("1603010200010001fc0303")


class ClientCertificateTest(TlsTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files.make_authority("other-ca")
        cls.files.make_certificate("stranger", authority="other-ca")
        cls.files.make_certificate("expired", days=-1)

    def is_served(self, certificate):
        try:
            context = self.files.client_context(certificate=certificate)
            return self.connect_tls(context=context).call("PING") == b"PONG"
        except (ssl.SSLError, OSError, EOFError):
            return False

    def check(self, auth, *served):
        server = self.start_tls_server(auth=auth)
        for certificate in (None, "client", "stranger", "expired"):
            self.assertEqual(self.is_served(certificate), certificate in served, certificate)
        return server

    def test_yes(self):
        server = self.check("yes", "client")
        # CONFIG SET counts for those who come later.
        with server.connect() as plain:
            self.assertEqual(plain.call("CONFIG", "SET", "tls-auth-clients", "no"), b"OK")
        self.assertTrue(self.is_served(None))

    def test_no(self):
        self.check("no", None, "client", "stranger", "expired")

    def test_optional(self):
        self.check("optional", None, "client")

    def test_a_chain_of_authorities(self):
        self.files.make_certificate(
            "between", extension="basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign\n"
        )
        self.files.make_certificate("below", authority="between")
        with open(self.files.path("chain.crt"), "w", encoding="ascii") as chain:
            for name in ("below", "between"):
                with open(self.files.path(f"{name}.crt"), encoding="ascii") as part:
                    chain.write(part.read())
        self.start_tls_server(
            "--tls-cert-file", self.files.path("chain.crt"),
            "--tls-key-file", self.files.path("below.key"),
        )  # fmt: skip
        self.assertEqual(self.connect_tls().call("PING"), b"PONG")


class HostilePeerTest(TlsTest):
    def connect_raw(self, sent=b""):
        raw = socket.create_connection(("127.0.0.1", self.tls_port), timeout=30)
        self.addCleanup(raw.close)
        raw.sendall(sent)
        return raw

    def assert_served_soon(self, server):
        began = time.monotonic()
        self.assertEqual(self.connect_tls().call("PING"), b"PONG")
        with server.connect() as plain:
            self.assertEqual(plain.call("PING"), b"PONG")
        self.assertLess(time.monotonic() - began, 5)

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

    def test_half_open_handshakes_hold_nobody_up(self):
        server = self.start_tls_server("--io-threads", 2)
        client = self.connect_tls()
        held = [self.connect_raw(HALF_HELLO if i % 2 else b"") for i in range(1500)]
        self.assert_served_soon(server)
        self.assertEqual(client.call("PING"), b"PONG")
        for raw in held:
            raw.close()

    def test_handshakes_take_half_of_the_places(self):
        server = self.start_tls_server("--maxclients", 16)
        client = self.connect_tls()
        first = self.connect_raw()
        for _ in range(12):
            self.connect_raw(HALF_HELLO)
        # Until the oldest have had their second the next ones wait in the kernel's queue.
        self.assert_served_soon(server)
        self.assertEqual(first.recv(1), b"", "the oldest had to give way")
        self.assertEqual(client.call("PING"), b"PONG")

    def test_a_handshake_has_ten_seconds(self):
        server = self.start_tls_server()
        slow = self.connect_raw(HALF_HELLO)
        began = time.monotonic()
        # A byte now and then is no excuse.
        with contextlib.suppress(OSError):
            while time.monotonic() - began < 20:
                slow.sendall(b"x")
                slow.settimeout(0.5)
                with contextlib.suppress(TimeoutError):
                    if slow.recv(1) == b"":
                        break
        self.assertTrue(8 < time.monotonic() - began < 15)
        self.assert_served_soon(server)

    def test_damaged_records_end_the_connection_alone(self):
        server = self.start_tls_server()
        for damage in (
            b"garbage" * 10,
            b"\x17\x03\x03\x00\x20" + b"x" * 32,
            b"\x15\x03\x03\x00\x02\x02\x28",
        ):
            client = self.connect_tls()
            self.assertEqual(client.call("PING"), b"PONG")
            raw = client.socket.detach()
            raw = socket.socket(fileno=raw)
            self.addCleanup(raw.close)
            raw.settimeout(10)
            raw.sendall(damage)
            with contextlib.suppress(ConnectionError):
                while raw.recv(1000) != b"":
                    pass
        self.assert_served_soon(server)

    def test_clients_before_a_login_have_little(self):
        server = self.start_tls_server("--requirepass", "secret")
        client = self.connect_tls()
        with contextlib.suppress(OSError):
            client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16000\r\n" + b"x" * 60_000)
        with contextlib.suppress(OSError, EOFError):
            while client.socket.recv(1000):
                pass
        client = self.connect_tls()
        # What follows a login in the same record is the login's.
        client.send(encode("AUTH", "secret") + encode("ECHO", "x" * 15_000) * 3)
        self.assertEqual(client.read_reply()[0], b"OK")
        for _ in range(3):
            self.assertEqual(len(client.read_reply()[0]), 15_000)
        with server.connect() as plain:
            self.assertEqual(plain.call("AUTH", "secret"), b"OK")
            wait_until(lambda: len(plain.call("CLIENT", "LIST").splitlines()) == 2)


if __name__ == "__main__":
    unittest.main()
