#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What clients cost: before they log in, when they are idle again, and in sum."""

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

    def send_all_that_is_taken(self, client, data):
        """Until the server closes the connection, which it may do before it has read all."""
        try:
            client.send(data)
        except OSError:
            pass


class BeforeAuthTest(ClientMemoryTest):
    OPTIONS = ("--requirepass", "secret")

    def connect(self):
        client = super().connect()
        self.assertEqual(client.call("AUTH", "secret"), b"OK")
        return client

    def stranger(self):
        client = self.server.connect()
        self.addCleanup(client.close)
        return client

    def test_replies_that_nobody_reads_end_the_connection(self):
        before_bytes = self.used_bytes()
        strangers = [self.stranger() for _ in range(20)]
        for client in strangers:
            self.send_all_that_is_taken(client, b"HELLO\r\n" * 300_000)
        self.assertLess(self.used_bytes() - before_bytes, 4 * MIB)
        for client in strangers:
            self.assertTrue(client.is_closed_by_server())


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


class SumTest(ClientMemoryTest):
    def test_the_biggest_client_is_closed(self):
        self.assertEqual(self.admin.call("CONFIG", "SET", "maxmemory-clients", "8mb"), b"OK")
        small, big = self.connect(), self.connect()
        self.assertEqual(small.call("PING"), b"PONG")
        self.send_all_that_is_taken(big, b"*2\r\n$3\r\nGET\r\n$90000000\r\n" + b"x" * 80 * MIB)
        self.assertTrue(big.is_closed_by_server())
        self.assertEqual(small.call("PING"), b"PONG")
        self.assertEqual(self.fields("stats")["evicted_clients"], "1")

    def test_queues_and_subscriptions_count(self):
        self.assertEqual(self.admin.call("CONFIG", "SET", "maxmemory-clients", "4mb"), b"OK")
        queue, subscriber = self.connect(), self.connect()
        queue.call("MULTI")
        self.send_all_that_is_taken(queue, encode("GET", b"k" * MIB) * 40)
        self.assertTrue(queue.is_closed_by_server())
        names = [b"c" * (MIB // 4) + b"%d" % number for number in range(80)]
        self.send_all_that_is_taken(subscriber, b"".join(encode("SUBSCRIBE", n) for n in names))
        wait_until(lambda: self.line_of(subscriber) is None, what="the subscriber's end")
        self.assertEqual(self.fields("stats")["evicted_clients"], "2")

    def test_a_queue_is_refused_when_memory_is_short(self):
        self.assertEqual(self.admin.call("CONFIG", "SET", "maxmemory", "32mb"), b"OK")
        client = self.connect()
        client.call("MULTI")
        replies = [client.call("GET", b"k" * MIB) for _ in range(60)]
        self.assertEqual(replies[0], b"QUEUED")
        refused = [reply != b"QUEUED" for reply in replies].index(True)
        self.assertTrue(replies[refused].text.startswith("OOM"))
        self.assertLess(refused, 33)
        # What came after the first refusal will never run, and took no memory.
        self.assertLess(int(self.line_of(client)["multi-mem"]), 33 * MIB)
        self.assertEqual(int(self.line_of(client)["multi"]), refused)
        self.assertTrue(client.call("EXEC").text.startswith("EXECABORT"))


if __name__ == "__main__":
    unittest.main()
