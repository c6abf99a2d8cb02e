#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests pub/sub with several I/O threads: the order of messages, unsubscribing while many messages
arrive, replicas, and client libraries."""

import random
import re
import subprocess
import threading
import unittest

import redis
from harness import ServerTest, seed_from_environment, wait_until
from harness.resp import encode

THREADS = ("--io-threads", "4")


class PubSubTest(ServerTest):
    def connect(self, server, **options):
        connection = server.connect(**options)
        self.addCleanup(connection.close)
        return connection

    def test_subscribers_on_all_threads_see_one_order(self):
        server = self.start_server(*THREADS)
        subscribers = [self.connect(server) for _ in range(8)]
        for index, subscriber in enumerate(subscribers):
            if index % 2:
                subscriber.call("HELLO", "3")
            subscriber.call("SUBSCRIBE", "c")
        publishers, messages = 6, 3000

        def publish(number):
            with server.connect() as connection:
                for start in range(0, messages, 100):
                    replies = connection.pipeline(
                        [("PUBLISH", "c", f"{number} {i}") for i in range(start, start + 100)]
                    )
                    assert all(value == len(subscribers) for value, _ in replies), replies

        threads = [threading.Thread(target=publish, args=(n,)) for n in range(publishers)]
        for thread in threads:
            thread.start()
        seen = [
            [subscriber.read_reply()[0][2] for _ in range(publishers * messages)]
            for subscriber in subscribers
        ]
        for thread in threads:
            thread.join()
        for other in seen[1:]:
            self.assertEqual(other, seen[0])
        for number in range(publishers):
            own = [text for text in seen[0] if text.startswith(b"%d " % number)]
            self.assertEqual(own, [b"%d %d" % (number, i) for i in range(messages)])

    def test_nothing_comes_after_the_last_unsubscription(self):
        """After the reply to UNSUBSCRIBE no message may follow, because the client would take it
        for the reply to its next command.
        """
        server = self.start_server(*THREADS)
        rng = random.Random(seed_from_environment())
        is_over = threading.Event()

        def flood():
            with server.connect() as connection:
                while not is_over.is_set():
                    connection.pipeline([("PUBLISH", f"c{i % 3}", "x" * 50) for i in range(50)])

        floods = [threading.Thread(target=flood) for _ in range(2)]
        for thread in floods:
            thread.start()
        received = 0
        try:
            for _ in range(300):
                with server.connect() as connection:
                    for _ in range(3):
                        names = rng.sample(["c0", "c1", "c2"], rng.randint(1, 3))
                        word = rng.choice(["", "P"])
                        connection.send(encode(word + "SUBSCRIBE", *names))
                        for _ in range(rng.randint(0, 30)):
                            received += connection.read_reply()[0][0] in (b"message", b"pmessage")
                        connection.send(encode(word + "UNSUBSCRIBE", *names) + encode("ECHO", "e"))
                        while connection.read_reply()[0][-1] != 0:
                            pass
                        self.assertEqual(connection.read_reply()[0], b"e")
        finally:
            is_over.set()
            for thread in floods:
                thread.join()
        self.assertGreater(received, 100)

    def test_replicas_hand_their_leaders_messages_on(self):
        leader = self.start_server(*THREADS, "--repl-diskless-sync-delay", "0")
        replica = self.start_server(*THREADS)
        on_replica, subscriber = self.connect(replica), self.connect(replica)
        self.assertEqual(on_replica.call("REPLICAOF", "127.0.0.1", leader.port), b"OK")
        wait_until(
            lambda: b"master_link_status:up" in on_replica.call("INFO", "replication"),
            what="the link",
        )
        subscriber.call("SUBSCRIBE", "c")
        publisher = self.connect(leader)
        publisher.pipeline([("PUBLISH", "c", i) for i in range(100)])
        publisher.pipeline([("MULTI",), ("SET", "k", "v"), ("PUBLISH", "c", "end"), ("EXEC",)])
        heard = [subscriber.read_reply()[0][2] for _ in range(101)]
        self.assertEqual(heard, [b"%d" % i for i in range(100)] + [b"end"])
        # Messages that are published on the replica do not reach clients of its leader.
        listener = self.connect(leader)
        listener.call("SUBSCRIBE", "c")
        self.assertEqual(on_replica.call("PUBLISH", "c", "here"), 1)
        self.assertEqual(publisher.call("PUBLISH", "c", "there"), 1)
        self.assertEqual(listener.read_reply()[0][2], b"there")
        self.assertEqual(publisher.call("WAIT", 1, 5000), 1)
        self.assertEqual(on_replica.call("GET", "k"), b"v")

    # The tests below subscribe with redis-cli and redis-py.

    def test_redis_cli(self):
        server = self.start_server()
        listener = subprocess.Popen(
            ["redis-cli", "-p", str(server.port), "--no-raw", "SUBSCRIBE", "news"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            publisher = self.connect(server)
            wait_until(lambda: publisher.call("PUBLISH", "news", "hello") == 1, what="SUBSCRIBE")
            lines = [listener.stdout.readline().strip() for _ in range(7)]
            self.assertEqual(lines[-3:], ['1) "message"', '2) "news"', '3) "hello"'])
        finally:
            listener.terminate()
            listener.wait()
            listener.stdout.close()

    def test_python_redis(self):
        server = self.start_server(*THREADS)
        client = redis.Redis(host="127.0.0.1", port=server.port)
        self.addCleanup(client.close)
        heard = []
        pubsub = client.pubsub(ignore_subscribe_messages=True)
        pubsub.subscribe(**{"c": lambda message: heard.append(message["data"])})
        pubsub.psubscribe(**{"p*": lambda message: heard.append(message["channel"])})
        worker = pubsub.run_in_thread(sleep_time=0.01)
        wait_until(lambda: client.pubsub_numpat() == 1, what="the second subscription")
        self.assertEqual(client.pubsub_numsub("c"), [(b"c", 1)])
        self.assertEqual(client.pubsub_numpat(), 1)
        self.assertEqual(client.pubsub_channels(), [b"c"])
        client.publish("c", "one")
        client.publish("p1", "two")
        wait_until(lambda: len(heard) == 2, what="both messages")
        self.assertEqual(sorted(heard), [b"one", b"p1"])
        worker.stop()
        worker.join()
        pubsub.close()
        wait_until(lambda: client.publish("c", "x") == 0, what="the end of the subscription")

    def test_python_redis_stays_usable_after_unsubscribing(self):
        server = self.start_server()
        client = redis.Redis(host="127.0.0.1", port=server.port, health_check_interval=1)
        self.addCleanup(client.close)
        pubsub = client.pubsub()
        pubsub.subscribe("c")

        def was_checked_twice():
            """redis-py checks a connection by PING. In subscriber mode, the reply to PING has the
            form of a message.
            """
            pubsub.get_message(timeout=0.2)
            with server.connect() as connection:
                stats = connection.call("INFO", "commandstats")
            calls = re.search(rb"cmdstat_ping:calls=(\d+)", stats)
            return calls and int(calls[1]) >= 2

        wait_until(was_checked_twice, "two health checks")
        client.publish("c", "x")
        wait_until(lambda: (pubsub.get_message() or {}).get("data") == b"x", what="the message")
        pubsub.unsubscribe()
        wait_until(lambda: (pubsub.get_message(timeout=0.1) or {}).get("type") == "unsubscribe",
                   what="the end")  # fmt: skip
        self.assertFalse(pubsub.subscribed)
        pubsub.close()
        self.assertTrue(client.ping())


if __name__ == "__main__":
    unittest.main()
