#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""CLIENT TRACKING: replies and invalidations are compared byte by byte with redis-server's, and
caches that follow them are compared with the data while several clients write.

BLOOMERY_SEED replays a run; BLOOMERY_TRACKING_STEPS shortens it.
"""

import os
import random
import re
import threading
import time
import unittest

from harness import ServerTest, seed_from_environment, wait_until
from replication_harness import ReplicaTest
from resp import Connection, Push, encode

STEPS = int(os.environ.get("BLOOMERY_TRACKING_STEPS", "4000"))
KEYS = [b"a", b"ab", b"abc", b"b", b"ba", b"c", b"", b"bin\x00\r\n\xff"]
FENCE = b"end of the step"


def is_news(value):
    """An invalidation, or the note that a redirect is broken; and a message of the fence."""
    if isinstance(value, Push):
        return True
    return isinstance(value, list) and len(value) == 3 and value[0] == b"message"


class Client:
    """One connection to each server; `news` is what has come besides replies."""

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
        """The raw replies; `client` in a word is replaced by that one's id."""
        replies = []
        for side, connection in enumerate(self.both):
            here = [str(w.ids[side]) if isinstance(w, Client) else w for w in words]
            connection.send(encode(*here))
            replies.append(self.read_reply(side))
        return replies

    def fence(self):
        """All that was sent before has come when this returns, unless PING would be queued."""
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
        self.assertEqual(self.without_ids(ours), self.without_ids(theirs), self.tell("replies"))

    def without_ids(self, raw):
        """Ids differ between the servers. And Redis' null is that of the protocol of who redirects,
        which may be another one than that of who is told."""
        raw = raw.replace(b"invalidate\r\n$-1\r\n", b"invalidate\r\n_\r\n")
        return re.sub(rb"(redirect\r\n:|tracking-redir-broken\r\n:|^:)[1-9]\d*", rb"\1ID", raw)

    def compare_news(self, timeout_s=10):
        """Waits until ours has as many as Redis, whose are sent before the reply to the writer."""
        deadline = time.monotonic() + timeout_s
        while True:
            for client in self.clients:
                client.fence()
            news = [[self.without_ids(b"".join(sorted(client.news[side])))
                     for client in self.clients] for side in (0, 1)]
            if news[0] == news[1]:
                break
            self.assertLess(time.monotonic(), deadline, self.tell(f"news: {news}"))
        count = sum(len(client.news[1]) for client in self.clients)
        for client in self.clients:
            client.news = [[], []]
        return count

    def tell(self, what):
        return f"{what}; the last steps: {self.history[-20:]}"

    def run_script(self, clients, script):
        """Lines "client command"; what begins with @ is a client's id. The news of each step."""
        count = 0
        for line in script.strip().split("\n"):
            name, *words = line.split()
            words = [clients[w[1:]] if w.startswith("@") else w for w in words]
            self.run_step(clients[name], *words)
            count += self.compare_news()
        return count

    def test_each_way_to_ask(self):
        clients = {"a": self.new_client(), "b": self.new_client(), "two": self.new_client("2")}
        self.assertEqual(self.run_script(clients, """
a CLIENT TRACKING
a CLIENT TRACKING maybe
a CLIENT TRACKING ON NOPE
a CLIENT TRACKING ON REDIRECT
a CLIENT TRACKING ON REDIRECT x
a CLIENT TRACKING ON REDIRECT 99999
a CLIENT TRACKING ON REDIRECT @b REDIRECT @b
a CLIENT TRACKING ON PREFIX
a CLIENT TRACKING ON PREFIX x
a CLIENT TRACKING ON BCAST OPTIN
a CLIENT TRACKING ON OPTIN OPTOUT
a CLIENT TRACKING ON BCAST PREFIX ab PREFIX a
a CLIENT TRACKINGINFO
two CLIENT TRACKINGINFO
a CLIENT GETREDIR
a CLIENT CACHING
a CLIENT CACHING YES
a CLIENT CACHING NO
a CLIENT TRACKING on
a CLIENT TRACKINGINFO
two CLIENT TRACKING ON REDIRECT @b NOLOOP
two CLIENT TRACKINGINFO
two CLIENT GETREDIR
a CLIENT CACHING YES
a CLIENT CACHING NO
a CLIENT CACHING perhaps
a CLIENT TRACKING ON BCAST
a CLIENT TRACKING ON OPTIN
a CLIENT TRACKING ON OPTOUT
a CLIENT TRACKINGINFO
a CLIENT CACHING NO
a CLIENT CACHING YES
a CLIENT TRACKINGINFO
a CLIENT CACHING YES
a CLIENT TRACKINGINFO
a PING
a CLIENT TRACKINGINFO
a CLIENT TRACKING OFF
a CLIENT TRACKING OFF
a CLIENT TRACKING ON OPTOUT NOLOOP
a CLIENT CACHING NO
a CLIENT TRACKINGINFO
a CLIENT TRACKING OFF NOPE
a CLIENT TRACKING OFF BCAST
a CLIENT TRACKING ON BCAST PREFIX x PREFIX y
a CLIENT TRACKING ON BCAST PREFIX xy
a CLIENT TRACKING ON BCAST PREFIX z NOLOOP
a CLIENT TRACKINGINFO
a CLIENT TRACKING ON BCAST
a CLIENT TRACKINGINFO
a CLIENT TRACKING ON BCAST
a CLIENT TRACKING ON
a RESET
a CLIENT TRACKINGINFO
a MULTI
a CLIENT TRACKING ON
a CLIENT TRACKINGINFO
a EXEC
a CLIENT TRACKINGINFO
"""), 0)

    def test_each_kind_of_news(self):
        clients = {"a": self.new_client(), "b": self.new_client(), "w": self.new_client("2")}
        self.assertGreater(self.run_script(clients, """
a CLIENT TRACKING ON
a GET k
w SET k 1
w SET k 2
a MGET k l m k
w DEL k
w MSET k 1 l 2 m 3 n 4
a GET k
a SET k 1
a GET k
a CLIENT TRACKING ON NOLOOP
a SET k 1
w SET k 3
a EXISTS k
w EXPIRE k 100
a TTL k
w PERSIST k
a STRLEN k
w RENAME k k2
a GETRANGE k2 0 1
a GETBIT k3 0
w COPY k2 k3
w SETBIT k2 7 1
a OBJECT ENCODING k2
w APPEND k2 x
a BITCOUNT k2
a DUMP k2
w INCR k2
w DEL k2
a BITFIELD_RO bits GET u8 0
w BITFIELD bits SET u8 0 5
a BITFIELD bits GET u8 0
w BITFIELD bits SET u8 0 6
a SET k x
a GETSET k y
a SET k z GET
w SET k 1
a GET k
w SELECT 1
w SET k other
w SELECT 0
a GET k
w FLUSHALL
w SET k 1
a GET k
a FLUSHDB
a GET k
w MULTI
w SET k 1
w INCR k
w EXEC
a MULTI
a GET k
a STRLEN l
a EXEC
w MSET k 1 l 1
a GET k
a CLIENT TRACKING OFF
w SET k 1
a CLIENT TRACKING ON OPTIN
a GET k
w SET k 1
a CLIENT CACHING YES
a GET k
a GET l
w MSET k 1 l 1
a CLIENT CACHING YES
a CLIENT ID
a GET k
w SET k 1
a CLIENT CACHING YES
a PING
a GET k
w SET k 1
a CLIENT CACHING YES
a NOPE
a GET k
w SET k 1
a CLIENT CACHING YES
a GET
a GET k
w SET k 1
a CLIENT CACHING YES
a MULTI
a GET k
a GET l
a EXEC
a GET m
w MSET k 1 l 1 m 1
a CLIENT TRACKING OFF
a CLIENT TRACKING ON OPTOUT
a GET k
w SET k 1
a CLIENT CACHING NO
a GET k
a GET l
w MSET k 1 l 1
a CLIENT TRACKING OFF
a CLIENT TRACKING ON
a GET k
a HELLO 2
w SET k 2
a GET k
a HELLO 3
w SET k 2
a GET k
a RESET
a HELLO 3
w SET k 3
w SET k 1 PXAT 1
"""), 20)

    def test_broadcast(self):
        clients = {"a": self.new_client(), "b": self.new_client(), "w": self.new_client("2")}
        self.assertGreater(self.run_script(clients, """
a CLIENT TRACKING ON BCAST PREFIX a PREFIX b
b CLIENT TRACKING ON BCAST NOLOOP
w MSET b1 1 a2 1 a1 1 c 1 a2 3
w GET a1
a SET a 1
b SET a 1
b MSET a 1 b 1 c 1
w MULTI
w SET a9 1
w SET a8 1
w SET a9 2
w DEL a9
w EXEC
w DEL nothing a1
w SELECT 3
w SET a1 1
w FLUSHALL
a CLIENT TRACKING ON BCAST PREFIX c
w SET c 1
a CLIENT TRACKING ON BCAST
w SET c 2
w SET zzz 2
a CLIENT TRACKING OFF
w SET c 2
a CLIENT TRACKING ON BCAST PREFIX z
w SET c 2
w SET z 2
b HELLO 2
w SET z 3
b CLIENT TRACKING OFF
w SET z 3
"""), 15)

    def test_redirects(self):
        clients = {name: self.new_client("2") for name in ("a", "w", "sub")}
        clients["three"] = self.new_client()
        clients["push"] = self.new_client()
        for connection in clients["sub"].both:
            connection.call("SUBSCRIBE", "__redis__:invalidate")
        self.assertGreater(self.run_script(clients, """
a CLIENT TRACKING ON REDIRECT @sub
a GET k
w SET k 1
a GET k
w FLUSHALL
a CLIENT TRACKING OFF
a CLIENT TRACKING ON BCAST REDIRECT @sub
w MSET k 1 l 2
a CLIENT TRACKING OFF
a CLIENT TRACKING ON REDIRECT @push
a GET k
w SET k 1
three CLIENT TRACKING ON REDIRECT @a
three GET k
w SET k 2
three CLIENT TRACKING ON REDIRECT @three NOLOOP
three GET k
w SET k 2
three GET k
three SET k 2
"""), 4)

    def test_a_redirect_that_breaks(self):
        tracker, plain = self.new_client(), self.new_client("2")
        target, writer = self.new_client(), self.new_client()
        for client in (tracker, plain):
            self.run_step(client, "CLIENT", "TRACKING", "ON", "REDIRECT", target)
            self.run_step(client, "GET", "k")
        self.clients.remove(target)
        target.close()
        for server in self.servers:
            with server.connect() as probe:
                wait_until(lambda p=probe: len(p.call("CLIENT", "LIST").splitlines()) == 4)
        self.run_step(writer, "SET", "k", "1")
        self.assertEqual(self.compare_news(), 1)
        for client in (tracker, plain):
            self.run_step(client, "CLIENT", "TRACKINGINFO")
            ours, theirs = (
                re.search(rb"flags=(\w+)", line)[1] for line in client.call("CLIENT", "INFO")
            )
            self.assertEqual(ours, theirs)
        self.run_step(tracker, "GET", "k")
        self.run_step(writer, "SET", "k", "1")
        self.assertEqual(self.compare_news(), 1)
        self.run_step(tracker, "CLIENT", "TRACKING", "ON")
        self.run_step(tracker, "CLIENT", "TRACKINGINFO")

    def test_figures(self):
        client, other = self.new_client(), self.new_client()
        for words in (
            ["CLIENT", "TRACKING", "ON"], ["GET", "a"], ["MGET", "a", "b"], ["SET", "a", "1"],
            ["GET", "c"], ["FLUSHALL"], ["GET", "a"],
        ):  # fmt: skip
            self.run_step(client, *words)
            self.compare_figures()
        self.run_step(other, "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "x", "PREFIX", "y")
        self.compare_figures()
        letters = [re.search(rb"flags=(\w+).* redir=(\S+)", line).groups()
                   for line in other.call("CLIENT", "INFO")]
        self.assertEqual(*letters)
        other.close()
        self.clients.remove(other)
        wait_until(lambda: self.figures(0)["tracking_clients"] == "1")
        wait_until(lambda: self.figures(1)["tracking_clients"] == "1")
        self.compare_figures()

    def figures(self, side):
        with self.servers[side].connect() as connection:
            text = connection.call("INFO").decode()
        return dict(re.findall(r"^(tracking_\w+):(\d+)", text, re.MULTILINE))

    def compare_figures(self):
        self.assertEqual(self.figures(0), self.figures(1), self.tell("figures"))

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
            # Redis 7.0 writes news of a client's own change into the midst of EXEC's array.
            for words in (["MULTI"], ["GET", key], ["SET", "never read", "1"],
                          ["MGET", *rng.sample(KEYS, 2)], ["EXEC"]):  # fmt: skip
                self.run_step(client, *words)
        else:
            self.run_step(client, rng.choice(["FLUSHDB", "FLUSHALL"]))


class CachingClient(threading.Thread):
    """Reads keys into a cache and drops what it is told to, until stop(); then catches up."""

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
        """What has come since; news that another thread tells may still be on its way."""
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
            # News that is lost, or came too early, leaves a value behind for good.
            wait_until(
                lambda one=client: not stale(one), 10, lambda one=client: f"none of {stale(one)}"
            )
            self.assertGreater(client.invalidations, 0)

    def write(self, server, seconds, seed):
        rng = random.Random(seed)
        with server.connect() as connection:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                key = b"key:%d" % rng.randrange(40)
                connection.pipeline(rng.choice([
                    [("SET", key, rng.random())], [("DEL", key)], [("APPEND", key, "x")] * 3,
                    [("SET", key, "short", "PX", rng.randrange(1, 20))],
                    [("MULTI",), ("SET", key, rng.random()), ("INCR", key), ("EXEC",)],
                ]))  # fmt: skip
                if rng.random() < 0.002:
                    connection.call("FLUSHALL")

    def test_caches_end_as_the_data(self):
        """Several I/O threads, writers and readers: no invalidation is lost or comes too early."""
        for options, limit in (((), "0"), (("BCAST", "PREFIX", "key:"), "0"), ((), "10")):
            server = self.start_server(
                "--io-threads", "3", "--hz", "100", "--tracking-table-max-keys", limit
            )
            clients = self.start_caching(server, *options)
            writers = [
                threading.Thread(target=self.write, args=(server, 3, seed)) for seed in range(3)
            ]
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join()
            time.sleep(0.5)  # the last short keys expire
            self.stop_and_check(server, clients)

    def test_a_replica_tells_of_its_leaders_changes(self):
        leader, replica = self.start_server(), self.start_server("--io-threads", "2")
        ahead, behind = self.connect(leader), self.connect(replica)
        ahead.call("SET", "before", "1")
        tracker = self.connect(replica)
        tracker.call("HELLO", "3")
        tracker.call("CLIENT", "TRACKING", "ON")
        self.follow(behind, leader.port)
        # All keys were replaced by the leader's.
        self.assertEqual(tracker.read_reply()[0], Push([b"invalidate", None]))
        self.wait_for_link(behind)
        for write in (("SET", "k", "1"), ("BF.ADD", "k2", "x"), ("DEL", "k")):
            tracker.call("EXISTS", write[1])
            ahead.call(*write)
            news = tracker.read_reply()[0]
            self.assertEqual(news, Push([b"invalidate", [write[1].encode()]]))

    def test_expiry_is_told(self):
        server = self.start_server("--hz", "100")
        tracker = self.connect(server)
        tracker.call("HELLO", "3")
        tracker.call("CLIENT", "TRACKING", "ON")
        # At once, or it might be gone before it is read.
        replies = tracker.pipeline([("SET", "k", "v", "PX", "30"), ("GET", "k")])
        self.assertEqual(replies[1][0], b"v")
        self.assertEqual(tracker.read_reply()[0], Push([b"invalidate", [b"k"]]))
        self.assertIsNone(tracker.call("GET", "k"))

    def test_filters_are_tracked(self):
        server = self.start_server()
        tracker, writer = self.connect(server), self.connect(server)
        tracker.call("HELLO", "3")
        tracker.call("CLIENT", "TRACKING", "ON")
        told = Push([b"invalidate", [b"f"]])
        for write in (("BF.RESERVE", "f", "0.01", "100", "DELETABLE"), ("BF.ADD", "f", "a"),
                      ("BF.MADD", "f", "b", "c"), ("BF.DEL", "f", "a"), ("BF.CLEAR", "f")):
            self.assertIs(tracker.call("BF.EXISTS", "f", "zz"), False)
            writer.call(*write)
            self.assertEqual(tracker.read_reply()[0], told, write)
        writer.call("BF.ADD", "f", "a")
        tracker.call("BF.EXISTS", "f", "a")
        # Nothing new, nothing changed.
        writer.call("BF.ADD", "f", "a")
        self.assertEqual(tracker.call("PING"), b"PONG")

    def test_replies_are_not_split(self):
        """Big replies to a client that reads slowly, with news in between."""
        server = self.start_server("--io-threads", "2")
        tracker, writer = self.connect(server), self.connect(server)
        writer.call("SET", "big", b"x" * 1_000_000)
        tracker.call("HELLO", "3")
        tracker.call("CLIENT", "TRACKING", "ON")
        rounds = 30
        tracker.send(encode("GET", "big") * rounds)
        for number in range(rounds):
            writer.call("SET", "small", number)
            writer.call("SETRANGE", "big", "0", "x")
        replies = news = 0
        while replies < rounds:
            value, _ = tracker.read_reply()
            if isinstance(value, Push):
                news += 1
            else:
                self.assertEqual(value, b"x" * 1_000_000)
                replies += 1
        tracker.send(encode("PING"))
        while isinstance(value, Push) or value != b"PONG":
            news += isinstance(value, Push)
            value = tracker.read_reply()[0]
        self.assertGreater(news, 0)

    def test_the_table_is_bounded(self):
        server = self.start_server("--tracking-table-max-keys", "100")
        tracker = self.connect(server)
        tracker.call("HELLO", "3")
        tracker.call("CLIENT", "TRACKING", "ON")
        keys = [b"key:%d" % number for number in range(1000)]
        told = []
        tracker.send(b"".join(encode("GET", key) for key in keys))
        replies = 0
        while replies < len(keys) or len(told) < 900:
            value, _ = tracker.read_reply()
            if isinstance(value, Push):
                told += value[1]
            else:
                replies += 1
        self.assertEqual(len(set(told)), 900)
        self.assertLess(len(set(told) & set(keys[900:])), 60, "the newest keys leave first")
        with server.connect() as other:
            self.assertIn(b"tracking_total_keys:100\r\n", other.call("INFO", "stats"))
            other.call("CONFIG", "SET", "tracking-table-max-keys", "10")
            wait_until(lambda: b"tracking_total_keys:10\r\n" in other.call("INFO", "stats"))
            tracker.close()
            wait_until(lambda: b"tracking_total_keys:0\r\n" in other.call("INFO", "stats"))

    def test_clients_that_vanish_leave_nothing_running(self):
        server = self.start_server("--io-threads", "3")
        writer = self.connect(server)
        for number in range(200):
            connection = server.connect()
            connection.send(encode("HELLO", "3") + encode("CLIENT", "TRACKING", "ON"))
            connection.send(encode("GET", "k") + encode("GET", f"k{number}"))
            if number % 2:
                connection.read_reply()
            connection.close()
            writer.call("SET", "k", number)
        wait_until(lambda: b"tracking_clients:0\r\n" in writer.call("INFO", "clients"))
        wait_until(lambda: b"tracking_total_keys:0\r\n" in writer.call("INFO", "stats"))


if __name__ == "__main__":
    unittest.main()
