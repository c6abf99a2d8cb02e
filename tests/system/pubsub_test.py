#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Pub/sub between I/O threads: order, unsubscribing under a flood, slow subscribers, clients."""

import random
import subprocess
import threading
import time
import unittest

import redis
from harness import SANITIZED, ServerTest, seed_from_environment, wait_until
from resp import Simple, encode

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
        """A late message would be taken for the reply of the next command."""
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

    def publish_until_closed(self, server, subscriber_name, read):
        """Publishes until the subscriber that does not read has been cut off, and not much faster
        than another one reads."""
        publisher = self.connect(server)
        payload = b"x" * 100_000
        for count in range(10_000):
            if publisher.call("PUBLISH", "c", payload) == 0:
                return count
            wait_until(lambda least=count - 20: len(read) >= least, 30, "the quick one reads")
            clients = publisher.call("CLIENT", "LIST")
            if subscriber_name not in clients:
                return count
        raise AssertionError("the slow subscriber was never cut off")

    def test_a_slow_subscriber_is_closed_at_the_hard_limit(self):
        server = self.start_server(*THREADS, "--client-output-buffer-limit", "pubsub 5mb 0 0")
        server.expect_log("reached its output buffer limit")
        slow, quick = self.connect(server), self.connect(server)
        slow.call("CLIENT", "SETNAME", "slow")
        slow.call("SUBSCRIBE", "c")
        quick.call("PSUBSCRIBE", "*")
        read = []
        reader = threading.Thread(target=self.read_until, args=(quick, b"end", read))
        reader.start()
        count = self.publish_until_closed(server, b"slow", read)
        control = self.connect(server)
        self.assertEqual(control.call("PUBLISH", "c", "end"), 1)
        reader.join(30)
        self.assertGreaterEqual(len(read), count)
        self.assertGreater(count, 40)
        info = control.call("INFO", "stats")
        self.assertIn(b"client_output_buffer_limit_disconnections:1\r\n", info)
        server.wait_for_log("reached its output buffer limit")

    @staticmethod
    def read_until(connection, last, into):
        while True:
            value = connection.read_reply()[0][-1]
            if value == last:
                return
            into.append(value)

    def test_a_slow_subscriber_is_closed_after_the_soft_limits_time(self):
        server = self.start_server("--client-output-buffer-limit", "pubsub 0 1mb 1")
        server.expect_log("reached its output buffer limit")
        slow, publisher = self.connect(server), self.connect(server)
        slow.call("SUBSCRIBE", "c")
        for _ in range(200):
            publisher.call("PUBLISH", "c", b"x" * 100_000)
        # No further message is needed for the server to notice.
        wait_until(
            lambda: publisher.call("PUBSUB", "NUMSUB", "c") == [b"c", 0], what="the cutting off"
        )

    def test_a_flood_costs_no_more_than_the_subscribers_limits(self):
        server = self.start_server(*THREADS, "--client-output-buffer-limit", "pubsub 1mb 0 0")
        server.expect_log("reached its output buffer limit")
        silent = [self.connect(server) for _ in range(200)]
        for connection in silent:
            connection.call("SUBSCRIBE", "c")
        before = server.resident_bytes()
        peak = 0
        publisher = self.connect(server)
        for _ in range(40):
            publisher.pipeline([("PUBLISH", "c", "x" * 1000)] * 200)
            peak = max(peak, server.resident_bytes())
        # 200 subscribers of at most 1 MB each, doubled by growing buffers, and what is on its way.
        # AddressSanitizer keeps freed memory back, 256 MB of it.
        self.assertLess(peak - before, (1000 if SANITIZED else 600) << 20)

    def test_publishers_of_big_messages_wait_for_the_subscribers_thread(self):
        """Past 16 MB on its way the next PUBLISH is held back, and then goes on."""
        server = self.start_server(*THREADS, "--client-output-buffer-limit", "pubsub 0 0 0")
        subscriber, publisher = self.connect(server), self.connect(server)
        subscriber.call("SUBSCRIBE", "c")
        messages = [bytes([65 + i]) * (20 << 20) for i in range(4)]
        for message in messages:
            publisher.send(encode("PUBLISH", "c", message))
        for message in messages:
            self.assertEqual(subscriber.read_reply()[0][2], message)
        self.assertEqual([publisher.read_reply()[0] for _ in messages], [1] * 4)

    def test_client_kill_by_type(self):
        server = self.start_server(*THREADS)
        subscriber, other = self.connect(server), self.connect(server)
        subscriber.call("SUBSCRIBE", "c")
        killer = self.connect(server)
        self.assertEqual(killer.call("CLIENT", "KILL", "TYPE", "pubsub"), 1)
        self.assertTrue(subscriber.is_closed_by_server())
        self.assertEqual(other.call("PING"), b"PONG")
        wait_until(lambda: killer.call("PUBLISH", "c", "x") == 0, what="the end of its listening")

    def test_a_resp3_publisher_hears_itself(self):
        server = self.start_server()
        connection = self.connect(server)
        connection.call("HELLO", "3")
        connection.call("SUBSCRIBE", "c")
        connection.send(encode("PUBLISH", "c", "x") + encode("SET", "k", "v") + encode("GET", "k"))
        frames = [connection.read_reply()[0] for _ in range(4)]
        self.assertIn([b"message", b"c", b"x"], frames)
        frames.remove([b"message", b"c", b"x"])
        self.assertEqual(frames, [1, Simple(b"OK"), b"v"])

    def test_messages_stand_behind_replies_that_wait_for_the_log(self):
        server = self.start_server("--appendonly", "yes", "--appendfsync", "always")
        connection, publisher = self.connect(server), self.connect(server)
        connection.call("HELLO", "3")
        for i in range(200):
            connection.send(encode("SUBSCRIBE", "c") + encode("SET", "k", i))
            while publisher.call("PUBLISH", "c", "x") == 0:
                pass
            connection.send(encode("UNSUBSCRIBE"))
            frames = [connection.read_reply()[0]]
            while frames[-1] != [b"unsubscribe", b"c", 0]:
                frames.append(connection.read_reply()[0])
            self.assertEqual(frames[0], [b"subscribe", b"c", 1])
            self.assertIn(Simple(b"OK"), frames)

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
        # What is published on the replica stays there.
        listener = self.connect(leader)
        listener.call("SUBSCRIBE", "c")
        self.assertEqual(on_replica.call("PUBLISH", "c", "here"), 1)
        self.assertEqual(publisher.call("PUBLISH", "c", "there"), 1)
        self.assertEqual(listener.read_reply()[0][2], b"there")
        self.assertEqual(publisher.call("WAIT", 1, 5000), 1)
        self.assertEqual(on_replica.call("GET", "k"), b"v")

    # --- clients ---

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
        deadline = time.monotonic() + 3
        # Health checks are PINGs in subscriber mode, whose replies look like messages.
        while time.monotonic() < deadline:
            pubsub.get_message(timeout=0.2)
        client.publish("c", "x")
        wait_until(lambda: (pubsub.get_message() or {}).get("data") == b"x", what="the message")
        pubsub.unsubscribe()
        wait_until(lambda: not pubsub.subscribed or pubsub.get_message() is None, what="the end")
        pubsub.close()
        self.assertTrue(client.ping())


if __name__ == "__main__":
    unittest.main()
