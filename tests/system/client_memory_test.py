#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What clients cost when they are idle again."""

import unittest

from harness import ServerTest, wait_until
from resp import encode

MIB = 1 << 20


class ClientMemoryTest(ServerTest):
    OPTIONS = ()

    def setUp(self):
        self.server = self.start_server(*self.OPTIONS)
        self.admin = self.connect()

    def connect(self):
        client = self.server.connect()
        self.addCleanup(client.close)
        return client

    def fields(self, section):
        text = self.admin.call("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

    def used_bytes(self):
        return int(self.fields("memory")["used_memory"])

    def line_of(self, client):
        port = client.socket.getsockname()[1]
        for line in self.admin.call("CLIENT", "LIST").decode().splitlines():
            if f"addr=127.0.0.1:{port} " in line:
                return dict(field.split("=", 1) for field in line.split(" "))
        return None


class IdleTest(ClientMemoryTest):
    def test_what_a_big_command_took_is_given_back(self):
        value = b"x" * (5 * MIB)
        clients = [self.connect() for _ in range(10)]
        self.admin.call("SET", "k", value)
        before_bytes = self.used_bytes()
        for client in clients:
            self.assertEqual(client.call("SET", "k", value), b"OK")
            # The beginning of another command does not keep it either.
            client.send(b"*1\r\n$4\r\nPI")
        wait_until(lambda: all(int(self.line_of(client)["qbuf"]) == 10 for client in clients),
                   what="the beginning of a command")  # fmt: skip
        # Replaced values go in the background.
        wait_until(lambda: self.used_bytes() - before_bytes < 6 * MIB, what="the memory back")
        for client in clients:
            self.assertLess(int(self.line_of(client)["qbuf-free"]), MIB)

    def test_a_command_of_many_words_is_forgotten(self):
        request = encode("BF.MADD", "f", *range(400_000))
        self.admin.call("BF.RESERVE", "f", "0.01", "4000000")
        self.admin.call("CONFIG", "SET", "save", "")
        client = self.connect()
        client.call("PING")
        before_bytes = self.used_bytes()
        client.send(request * 4)
        for _ in range(4):
            self.assertEqual(len(client.read_reply()[0]), 400_000)
        self.assertEqual(client.call("PING"), b"PONG")
        wait_until(lambda: self.used_bytes() - before_bytes < 4 * MIB, what="the memory back")


if __name__ == "__main__":
    unittest.main()
