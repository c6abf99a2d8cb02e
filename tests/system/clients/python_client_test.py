#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests python3-redis as Debian ships it: bf(), pipelines, transactions, and locks.

Version 4 of python3-redis speaks RESP2 only. Tests that use harness/resp.py cover RESP3.
"""

import threading
import unittest

import redis
from harness import ServerTest


class PythonClientTest(ServerTest):
    def setUp(self):
        self.server = self.start_server()
        self.client = self.new_client()

    def new_client(self, **options):
        client = redis.Redis(host="127.0.0.1", port=self.server.port, **options)
        self.addCleanup(client.close)
        return client

    def test_filters(self):
        bf = self.client.bf()
        self.assertTrue(bf.create("f", 0.01, 1000))
        with self.assertRaisesRegex(redis.ResponseError, "item exists"):
            bf.create("f", 0.01, 1000)
        self.assertTrue(bf.create("e", 0.01, 1000, expansion=1))
        self.assertTrue(bf.create("n", 0.01, 1000, noScale=True))
        with self.assertRaises(redis.ResponseError):
            bf.create("x", 0.01, 1000, expansion=2, noScale=True)
        self.assertEqual(bf.add("f", "a"), 1)
        self.assertEqual(bf.add("f", "a"), 0)
        self.assertEqual(bf.madd("f", "a", "b", "c"), [0, 1, 1])
        self.assertEqual(bf.exists("f", "b"), 1)
        self.assertEqual(bf.exists("f", "z"), 0)
        self.assertEqual(bf.mexists("f", "a", "z"), [1, 0])
        # This version of python3-redis has no method for BF.CARD.
        self.assertEqual(self.client.execute_command("BF.CARD", "f"), 3)

    def test_insert_and_info(self):
        bf = self.client.bf()
        self.assertEqual(
            bf.insert("f", ["a", "b"], capacity=1000, error=0.001, expansion=3), [1, 1]
        )
        info = bf.info("f")
        self.assertEqual(info.capacity, 1000)
        self.assertEqual(info.filterNum, 1)
        self.assertEqual(info.insertedNum, 2)
        self.assertEqual(info.expansionRate, 3)
        self.assertGreater(info.size, 0)
        with self.assertRaisesRegex(redis.ResponseError, "not found"):
            bf.insert("none", ["a"], noCreate=True)
        bf.create("n", 0.01, 10, noScale=True)
        self.assertIsNone(bf.info("n").expansionRate)

    def test_full_filter_in_madd_gives_an_error_element(self):
        bf = self.client.bf()
        bf.create("f", 0.0001, 2, noScale=True)
        replies = bf.madd("f", "a", "b", "c", "d")
        self.assertEqual(replies[:2], [1, 1])
        self.assertEqual(len(replies), 3)
        self.assertIsInstance(replies[2], redis.ResponseError)

    def test_pipelines_with_and_without_transaction(self):
        for transaction in (True, False):
            with self.subTest(transaction=transaction):
                self.client.flushall()
                with self.client.pipeline(transaction=transaction) as pipe:
                    pipe.set("s", "v").get("s").setbit("b", 7, 1).incr("n")
                    pipe.execute_command("BF.ADD", "f", "a")
                    pipe.execute_command("BF.EXISTS", "f", "a")
                    pipe.mset({"x": 1, "y": 2}).mget("x", "y", "z")
                    replies = pipe.execute()
                self.assertEqual(replies, [True, b"v", 0, 1, 1, 1, True, [b"1", b"2", None]])

    def test_bloom_pipeline(self):
        pipe = self.client.pipeline(transaction=False)
        for number in range(1000):
            pipe.bf().add("f", f"item:{number}")
        self.assertEqual(sum(pipe.execute()), self.client.execute_command("BF.CARD", "f"))

    def test_error_inside_a_pipeline_leaves_the_rest(self):
        self.client.set("s", "text")
        with self.client.pipeline(transaction=False) as pipe:
            pipe.incr("s")
            pipe.set("t", "1")
            pipe.execute_command("BF.ADD", "s", "a")
            replies = pipe.execute(raise_on_error=False)
        self.assertIsInstance(replies[0], redis.ResponseError)
        self.assertIs(replies[1], True)
        # python3-redis removes the error code from a message only if it has an exception class for
        # that code. So only the rest of the message is compared.
        self.assertRegex(str(replies[2]), "wrong kind of value")

    def test_optimistic_locking(self):
        def increment(pipe):
            value = int(pipe.get("n") or 0)
            pipe.multi()
            pipe.set("n", value + 1)

        def worker():
            client = self.new_client()
            for _ in range(50):
                client.transaction(increment, "n")

        workers = [threading.Thread(target=worker) for _ in range(4)]
        for thread in workers:
            thread.start()
        for thread in workers:
            thread.join()
        self.assertEqual(self.client.get("n"), b"200")

    def test_lock_by_set_nx_with_expiry(self):
        # Lock.acquire() is SET NX PX; its release() is a Lua script, which this server does not
        # support.
        first = self.client.lock("lock", timeout=30)
        self.assertTrue(first.acquire(blocking=False))
        self.assertFalse(self.new_client().lock("lock", timeout=30).acquire(blocking=False))
        self.assertTrue(0 < self.client.pttl("lock") <= 30_000)
        self.assertTrue(first.locked() and first.owned())
        self.client.delete("lock")
        self.assertFalse(first.locked())

    def test_strings_keys_and_expiry(self):
        client = self.client
        self.assertTrue(client.set("k", b"\x00\xff", ex=100, nx=True))
        self.assertIsNone(client.set("k", "x", nx=True))
        self.assertEqual(client.get("k"), b"\x00\xff")
        self.assertTrue(0 < client.ttl("k") <= 100)
        self.assertEqual(client.bitfield("b").set("u8", "#1", 200).incrby("u8", "#1", 60).execute(),
                         [0, 4])  # fmt: skip
        self.assertEqual(client.bitop("NOT", "c", "b"), 2)
        self.assertEqual(client.bitpos("c", 0), 13)
        self.assertEqual(set(client.scan_iter("*")), {b"k", b"b", b"c"})
        self.assertEqual(client.incrbyfloat("fl", 0.1), 0.1)
        self.assertEqual(client.type("k"), b"string")
        self.assertEqual(client.info()["role"], "master")

    def test_health_check_and_client_name(self):
        client = self.new_client(health_check_interval=1, client_name="tester", db=1)
        client.set("k", "v")
        self.assertEqual(client.client_getname(), "tester")
        self.assertIsNone(self.client.get("k"))


if __name__ == "__main__":
    unittest.main()
