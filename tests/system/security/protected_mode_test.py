#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Protected mode: a server that nobody has guarded answers its own machine only."""

import unittest

from harness import ServerTest
from harness.network import create_network
from harness.resp import Connection


class ProtectedModeTest(ServerTest):
    def start(self, *options):
        """A server in a network of its own, and its address there."""
        network = create_network(1)
        self.addCleanup(network.close)
        if not network.can_cut:
            self.skipTest("needs a network namespace")
        server = self.start_server("--bind", "*", *options, prefix=network.prefix(0))
        return server, network.addresses[0]

    def test_strangers_from_elsewhere_are_told_why(self):
        server, address = self.start()
        with Connection(server.port, host=address) as client:
            said = client.read_to_end()
        self.assertRegex(said, rb"^-DENIED [^\r\n]*protected mode[^\r\n]*\r\n$")

    def test_a_password_opens_the_server(self):
        server, address = self.start("--requirepass", "secret")
        with Connection(server.port, host=address) as client:
            self.assertRegex(client.call("GET", "k").text, "^NOAUTH ")
            self.assertEqual(client.call("AUTH", "secret"), b"OK")
            # Taken away, it closes the door to those who come later.
            self.assertEqual(client.call("CONFIG", "SET", "requirepass", ""), b"OK")
            with Connection(server.port, host=address) as late:
                self.assertRegex(late.read_to_end(), rb"^-DENIED ")

    def test_it_can_be_switched_off(self):
        server, address = self.start("--protected-mode", "no")
        with Connection(server.port, host=address) as client:
            self.assertEqual(client.call("PING"), b"PONG")


if __name__ == "__main__":
    unittest.main()
