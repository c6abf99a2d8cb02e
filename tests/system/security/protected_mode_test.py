#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests protected mode: a server without a password serves only clients on its own machine."""

import unittest

from harness import ServerTest
from harness.network import create_network
from harness.resp import Connection


class ProtectedModeTest(ServerTest):
    def start(self, *options):
        """Starts a server in a network namespace. Returns the server and its address there."""
        network = create_network(1)
        self.addCleanup(network.close)
        if not network.can_cut:
            self.skipTest("needs a network namespace")
        server = self.start_server("--bind", "*", *options, prefix=network.prefix(0))
        return server, network.addresses[0]

    def test_remote_clients_get_a_reason(self):
        server, address = self.start()
        with Connection(server.port, host=address) as client:
            said = client.read_to_end()
        self.assertRegex(said, rb"^-DENIED [^\r\n]*protected mode[^\r\n]*\r\n$")

    def test_a_password_opens_the_server(self):
        server, address = self.start("--requirepass", "secret")
        with Connection(server.port, host=address) as client:
            self.assertRegex(client.call("GET", "k").text, "^NOAUTH ")
            self.assertEqual(client.call("AUTH", "secret"), b"OK")
            # After the password is removed, the server again rejects new clients.
            self.assertEqual(client.call("CONFIG", "SET", "requirepass", ""), b"OK")
            with Connection(server.port, host=address) as late:
                self.assertRegex(late.read_to_end(), rb"^-DENIED ")

    def test_it_can_be_switched_off(self):
        server, address = self.start("--protected-mode", "no")
        with Connection(server.port, host=address) as client:
            self.assertEqual(client.call("PING"), b"PONG")


if __name__ == "__main__":
    unittest.main()
