#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests which clients a TLS port accepts, and many clients that never finish their handshakes.
tests/server/net/tls_port_test.cpp has more tests of such clients.
"""

import select
import socket
import ssl
import unittest

from harness import DEADLINE_S, wait_until
from harness.tls import TlsTest

# The first 11 bytes of a ClientHello, in a TLS record that announces 512 bytes.
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
        # A change of tls-auth-clients by CONFIG SET applies to later connections.
        with server.connect() as plain:
            self.assertEqual(plain.call("CONFIG", "SET", "tls-auth-clients", "no"), b"OK")
        self.assertTrue(self.is_served(None))


class HostilePeerTest(TlsTest):
    def connect_raw(self, sent=b""):
        raw = socket.create_connection(("127.0.0.1", self.tls_port), timeout=DEADLINE_S)
        self.addCleanup(raw.close)
        raw.sendall(sent)
        return raw

    def assert_served(self, server):
        self.assertEqual(self.connect_tls().call("PING"), b"PONG")
        with server.connect() as plain:
            self.assertEqual(plain.call("PING"), b"PONG")

    def test_half_open_handshakes_do_not_delay_others(self):
        server = self.start_tls_server("--io-threads", 2)
        client = self.connect_tls()

        def is_served_beside_them():
            """Opens half-open connections, and checks that the server still serves clients. Returns
            whether the first half-open connection stayed open. On a slow machine the server may
            have closed it because of a timeout.
            """
            held = [self.connect_raw(HALF_HELLO if i % 2 else b"") for i in range(1500)]
            self.assert_served(server)
            self.assertEqual(client.call("PING"), b"PONG")
            are_open = not select.select(held[:1], [], [], 0)[0]
            for raw in held:
                raw.close()
            return are_open

        wait_until(is_served_beside_them, "service beside half handshakes")


if __name__ == "__main__":
    unittest.main()
