#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests CLIENT TRACKING. Replies and invalidations are compared byte by byte with those of
redis-server. Clients apply invalidations to their caches while other clients write, and in the end
the caches must equal the data.

BLOOMERY_SEED=n repeats a run. BLOOMERY_TRACKING_STEPS=n sets the number of random steps.
"""

import random
import re
import threading
import unittest

from harness import ServerTest, seed_from_environment, wait_until
from harness.counts import count
from harness.replication import ReplicaTest
from harness.resp import Connection, Push, encode

STEPS = count("TRACKING_STEPS")
WRITES = count("TRACKING_WRITES")
KEYS = [b"a", b"ab", b"abc", b"b", b"ba", b"c", b"", b"bin\x00\r\n\xff"]
FENCE = b"end of the step"


def is_news(value):
    """Returns whether the value is not a reply but a notification: a RESP3 push or a pub/sub
    message. A notification is an invalidation, or the push about a broken redirection.
    """
    if isinstance(value, Push):
        return True
    return isinstance(value, list) and len(value) == 3 and value[0] == b"message"


class Client:
    """A client with one connection to our server and one to redis-server. `news` has the
    invalidations that each connection received.
    """

    def __init__(self, servers):
        self.both = [server.connect() for server in servers]
        self.ids = [connection.call("CLIENT", "ID") for connection in self.both]
        self.is_in_multi = False
        self.news = [[], []]

    def read_reply(self, side):
        while True:
            value, raw = self.both[side].read_reply()
            if not is_news(value):
                return raw
            self.news[side].append(raw)

    def call(self, *words):
        """Sends a command to both servers and returns the raw replies. A word that is a Client
        object is replaced by the id of that client on each server.
        """
        replies = []
        for side, connection in enumerate(self.both):
            here = [str(w.ids[side]) if isinstance(w, Client) else w for w in words]
            connection.send(encode(*here))
            replies.append(self.read_reply(side))
        return replies

    def fence(self):
        """Sends PING and reads until its reply, so that all earlier output of both servers has
        arrived. Does nothing inside MULTI, which would queue the PING.
        """
        if self.is_in_multi:
            return
        for side, connection in enumerate(self.both):
            connection.send(encode("PING", FENCE))
            while True:
                value, raw = connection.read_reply()
                if value in (FENCE, [b"pong", FENCE]):
                    break
                self.news[side].append(raw)

    def close(self):
        for connection in self.both:
            connection.close()


class TrackingDifferentialTest(ServerTest):
    def setUp(self):
        self.servers = [self.start_server("--io-threads", "3"), self.start_redis()]
        self.clients = []
        self.history = []

    def new_client(self, protocol="3"):
        client = Client(self.servers)
        client.call("HELLO", protocol)
        client.news = [[], []]
        self.addCleanup(client.close)
        self.clients.append(client)
        return client

    def run_step(self, client, *words):
        self.history.append((self.clients.index(client), words))
        ours, theirs = client.call(*words)
        if words[0] == "MULTI":
            client.is_in_multi = True
        elif words[0] in ("EXEC", "RESET"):
            client.is_in_multi = False
        if words[0] == "HELLO":
            return
        self.assertEqual(self.without_ids(ours), self.without_ids(theirs), self.trace("replies"))

    def without_ids(self, raw):
        """Removes client ids, because they differ between the servers. Also replaces the RESP2 null
        in an invalidation by the RESP3 null. Redis chooses the null by the protocol of the
        redirecting client, not of the receiver.
        """
        raw = raw.replace(b"invalidate\r\n$-1\r\n", b"invalidate\r\n_\r\n")
        return re.sub(rb"(redirect\r\n:|tracking-redir-broken\r\n:|^:)[1-9]\d*", rb"\1ID", raw)

    def compare_news(self):
        """Waits until our server has sent the same invalidations as Redis, and returns their
        number. Redis sends them before it replies to the writer; our server may send them later.
        """
        news = []

        def are_equal():
            for client in self.clients:
                client.fence()
            news[:] = [[self.without_ids(b"".join(sorted(client.news[side])))
                        for client in self.clients] for side in (0, 1)]
            return news[0] == news[1]

        wait_until(are_equal, lambda: self.trace(f"equal news: {news}"), poll_every_s=0.001)
        count = sum(len(client.news[1]) for client in self.clients)
        for client in self.clients:
            client.news = [[], []]
        return count

    def trace(self, what):
        return f"{what}; the last steps: {self.history[-20:]}"

    def test_a_random_session(self):
        seed = seed_from_environment()
        rng = random.Random(seed)
        self.history.append(("seed", seed))
        for protocol in ("3", "3", "3", "2", "2"):
            self.new_client(protocol)
        for connection in self.clients[4].both:
            connection.call("SUBSCRIBE", "x")
        news = 0
        for _ in range(STEPS):
            client = rng.choice(self.clients[:4])
            self.random_step(rng, client)
            news += self.compare_news()
        print(f"{STEPS} steps, {news} news, seed {seed}")
        self.assertGreater(news, STEPS / 10)

    def random_step(self, rng, client):
        kind = rng.choices(["read", "write", "ask", "caching", "many", "flush"],
                           [40, 40, 8, 8, 10, 1])[0]  # fmt: skip
        key = rng.choice(KEYS)
        if kind == "read":
            self.run_step(client, *rng.choice([
                ["GET", key], ["MGET", *rng.sample(KEYS, 3)], ["EXISTS", key], ["STRLEN", key],
                ["TTL", key], ["GETEX", key], ["TYPE", key]]))  # fmt: skip
        elif kind == "write":
            self.run_step(client, *rng.choice([
                ["SET", key, "1"], ["DEL", key, rng.choice(KEYS)], ["APPEND", key, "x"],
                ["MSET", key, "1", rng.choice(KEYS), "2"], ["EXPIRE", key, "1000"],
                ["RENAMENX", key, rng.choice(KEYS)], ["SETNX", key, "1"]]))  # fmt: skip
        elif kind == "ask":
            options = rng.choice([[], ["NOLOOP"], ["OPTIN"], ["OPTOUT"], ["BCAST"],
                                  ["BCAST", "PREFIX", "a"], ["BCAST", "NOLOOP", "PREFIX", "b"],
                                  ["REDIRECT", rng.choice(self.clients)]])  # fmt: skip
            if rng.random() < 0.5:
                self.run_step(client, "CLIENT", "TRACKING", "OFF")
            self.run_step(client, "CLIENT", "TRACKING", "ON", *options)
            self.run_step(client, "CLIENT", "TRACKINGINFO")
        elif kind == "caching":
            self.run_step(client, "CLIENT", "CACHING", rng.choice(["YES", "NO"]))
        elif kind == "many":
            # No client reads the key that the transaction writes. Otherwise Redis 7.0 would write
            # the invalidation of this key between the elements of EXEC's array.
            for words in (["MULTI"], ["GET", key], ["SET", "never read", "1"],
                          ["MGET", *rng.sample(KEYS, 2)], ["EXEC"]):  # fmt: skip
                self.run_step(client, *words)
        else:
            self.run_step(client, rng.choice(["FLUSHDB", "FLUSHALL"]))


class CachingClient(threading.Thread):
    """Reads and caches keys, and drops invalidated ones, until `stopping` is set. Then catch_up()
    applies the last invalidations.
    """

    def __init__(self, port, keys, *options):
        super().__init__(daemon=True)
        self.connection = Connection(port)
        self.connection.call("HELLO", "3")
        self.connection.call("CLIENT", "TRACKING", "ON", *options)
        self.keys = keys
        self.cache = {}
        self.invalidations = 0
        self.stopping = False
        self.random = random.Random(port)

    def take(self, value):
        self.invalidations += 1
        for key in self.cache.copy() if value[1] is None else value[1]:
            self.cache.pop(key, None)

    def read(self, *keys):
        for key in keys:
            self.connection.send(encode("GET", key))
        left = list(keys)
        while left:
            value, _ = self.connection.read_reply()
            if isinstance(value, Push):
                self.take(value)
            else:
                self.cache[left.pop(0)] = value

    def run(self):
        while not self.stopping:
            self.read(*self.random.sample(self.keys, 5))

    def catch_up(self):
        """Applies the invalidations that have arrived. Other threads of the server may send more of
        them later.
        """
        while self.connection.has_reply():
            self.take(self.connection.read_reply()[0])


class TrackingTest(ReplicaTest):
    def start_caching(self, server, *options, count=3):
        keys = [b"key:%d" % number for number in range(40)]
        clients = [CachingClient(server.port, keys, *options) for _ in range(count)]
        for client in clients:
            self.addCleanup(client.connection.close)
            client.start()
        return clients

    def stop_and_check(self, server, clients):
        for client in clients:
            client.stopping = True
            client.join()
        with server.connect() as connection:
            data = {key: connection.call("GET", key) for key in clients[0].keys}

        def stale(client):
            client.catch_up()
            return {k: (v, data[k]) for k, v in client.cache.items() if data[k] != v}

        for client in clients:
            # An invalidation that is lost, or sent before its write takes effect, leaves a stale
            # value in the cache forever.
            wait_until(
                lambda one=client: not stale(one), lambda one=client: f"none of {stale(one)}"
            )
            self.assertGreater(client.invalidations, 0)

    def write(self, server, rounds, seed):
        rng = random.Random(seed)
        with server.connect() as connection:
            for _ in range(rounds):
                key = b"key:%d" % rng.randrange(40)
                connection.pipeline(rng.choice([
                    [("SET", key, rng.random())], [("DEL", key)], [("APPEND", key, "x")] * 3,
                    [("SET", key, "short", "PX", rng.randrange(1, 20))],
                    [("MULTI",), ("SET", key, rng.random()), ("INCR", key), ("EXEC",)],
                ]))  # fmt: skip
                if rng.random() < 0.002:
                    connection.call("FLUSHALL")

    def test_caches_end_as_the_data(self):
        """With several I/O threads, writers and readers, the server loses no invalidation and sends
        none before its write takes effect.
        """
        for options, limit in (((), "0"), (("BCAST", "PREFIX", "key:"), "0"), ((), "10")):
            server = self.start_server(
                "--io-threads", "3", "--hz", "100", "--tracking-table-max-keys", limit
            )
            clients = self.start_caching(server, *options)
            writers = [
                threading.Thread(target=self.write, args=(server, WRITES, seed))
                for seed in range(3)
            ]
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join()
            with server.connect() as connection:
                self.wait_until_deleted_what_expired(connection)
            self.stop_and_check(server, clients)

    def test_a_lower_limit_of_keys_is_kept_at_once(self):
        """As in Redis, a lower tracking-table-max-keys takes effect at once, and not only in the
        next run of a periodic task.
        """
        server = self.start_server("--enable-debug-command", "yes")
        tracker, other = self.connect(server), self.connect(server)
        self.assertEqual(other.call("DEBUG", "PAUSE-CRON", "1"), b"OK")
        tracker.call("HELLO", "3")
        tracker.call("CLIENT", "TRACKING", "ON")
        self.assertEqual(tracker.call("MGET", "a", "b"), [None, None])
        self.assertEqual(other.call("CONFIG", "SET", "tracking-table-max-keys", "1"), b"OK")
        news = tracker.read_reply()[0]
        self.assertIn(news, [Push([b"invalidate", [key]]) for key in (b"a", b"b")])
        self.assertIn(b"\r\ntracking_total_keys:1\r\n", other.call("INFO", "stats"))

    def test_replica_sends_invalidations_of_its_leader(self):
        leader, replica = self.start_server(), self.start_server("--io-threads", "2")
        ahead, behind = self.connect(leader), self.connect(replica)
        ahead.call("SET", "before", "1")
        tracker = self.connect(replica)
        tracker.call("HELLO", "3")
        tracker.call("CLIENT", "TRACKING", "ON")
        self.follow(behind, leader.port)
        # The full sync from the new leader replaces all keys of the replica. So the replica
        # invalidates all keys.
        self.assertEqual(tracker.read_reply()[0], Push([b"invalidate", None]))
        self.wait_for_link(behind)
        for write in (("SET", "k", "1"), ("BF.ADD", "k2", "x"), ("DEL", "k")):
            tracker.call("EXISTS", write[1])
            ahead.call(*write)
            news = tracker.read_reply()[0]
            self.assertEqual(news, Push([b"invalidate", [write[1].encode()]]))


if __name__ == "__main__":
    unittest.main()
