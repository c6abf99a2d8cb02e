#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the same pub/sub session, over several connections, on our server and on redis-server. Every
byte of every reply and message must be equal.
Replies without a guaranteed order are sorted before the comparison. These are the messages of one
PUBLISH to one client by several patterns, confirmations of an UNSUBSCRIBE without names, and lists
of channels. If a RESP3 client publishes to itself, its message may precede or follow its reply
(Redis 7.0 and 7.2 differ). So messages and replies are compared separately.

BLOOMERY_SEED replays a run; BLOOMERY_PUBSUB_STEPS shortens it.
"""

import random
import re
import select
import time
import unittest

from harness import DEADLINE_S, ServerTest, seed_from_environment, wait_until
from harness.counts import count
from harness.resp import encode

STEPS = count("PUBSUB_STEPS")
MESSAGES = (b"message", b"pmessage", b"smessage")
LISTEN = {b"SUBSCRIBE": 0, b"PSUBSCRIBE": 1, b"SSUBSCRIBE": 2}
LEAVE = {b"UNSUBSCRIBE": 0, b"PUNSUBSCRIBE": 1, b"SUNSUBSCRIBE": 2}
UNORDERED = {b"CHANNELS", b"SHARDCHANNELS"}
CHANNELS = [b"a", b"ab", b"b", b"news.art", b"news.it", b"", b"bin\x00\r\n\xff", b"x" * 300]
PATTERNS = [b"*", b"a*", b"news.*", b"?", b"[ab]", b"news.[ai]*", b"\\a", b"", b"none*"]
PAYLOADS = [b"", b"hi", b"1", b"\x00\xff\r\n", b"y" * 5000]


class Client:
    """Holds one connection to each server."""

    def __init__(self, servers):
        self.both = [server.connect() for server in servers]
        self.protocol = 2
        self.subscribed = [set(), set(), set()]

    def is_restricted(self):
        return self.protocol == 2 and any(self.subscribed)

    def close(self):
        for connection in self.both:
            connection.close()


def is_message(value):
    return isinstance(value, list) and len(value) > 2 and value[0] in MESSAGES


class PubSubDifferentialTest(ServerTest):
    def setUp(self):
        self.seed = seed_from_environment()
        self.rng = random.Random(self.seed)
        self.servers = [self.start_server("--io-threads", "3"), self.start_redis()]
        self.clients = []
        self.history = []
        self.messages = 0

    def new_client(self):
        client = Client(self.servers)
        self.addCleanup(client.close)
        self.clients.append(client)
        return client

    # The methods below run one step on both servers, and compare the replies.

    def run_step(self, client, command):
        self.history.append((self.clients.index(client), command))
        name = command[0].upper()
        confirmations = self.expected_confirmations(client, command)
        outcomes = []
        for server in (0, 1):
            connection = client.both[server]
            connection.send(encode(*command))
            frames = self.read_frames(connection, confirmations)
            messages = {index: [] for index in range(len(self.clients))}
            own = messages[self.clients.index(client)]
            own += [raw for value, raw in frames if is_message(value)]
            replies = [(value, raw) for value, raw in frames if not is_message(value)]
            if name in (b"PUBLISH", b"SPUBLISH") and type(replies[0][0]) is int:
                self.collect(server, messages, replies[0][0])
            outcomes.append((replies, {i: sorted(m) for i, m in messages.items()}))
        self.compare(command, outcomes)
        self.messages += sum(map(len, outcomes[0][1].values()))
        return outcomes[1][0][0][0]

    def expected_confirmations(self, client, command):
        name = command[0].upper()
        if name in LISTEN and len(command) > 1:
            return len(command) - 1
        if name in LEAVE:
            if len(command) > 1:
                return len(command) - 1
            return max(1, len(client.subscribed[LEAVE[name]]))
        return 1

    def read_frames(self, connection, replies):
        """Reads frames until `replies` of them are replies, and returns all frames. The other
        frames are pub/sub messages."""
        frames = []
        while replies > 0:
            frames.append(connection.read_reply())
            replies -= not is_message(frames[-1][0])
        return frames

    def collect(self, server, messages, count):
        """Reads until `count` messages have arrived, in total, at all clients of one server."""
        deadline = time.monotonic() + DEADLINE_S
        missing = count - sum(map(len, messages.values()))
        while missing > 0:
            self.assertLess(time.monotonic(), deadline, self.trace(f"{missing} messages missing"))
            for index, client in enumerate(self.clients):
                connection = client.both[server]
                while missing > 0 and connection.has_reply():
                    value, raw = connection.read_reply()
                    self.assertTrue(is_message(value), self.trace(f"not a message: {value!r}"))
                    messages[index].append(raw)
                    missing -= 1
            if missing > 0:
                sockets = [client.both[server].socket for client in self.clients]
                select.select(sockets, [], [], 1)

    def compare(self, command, outcomes):
        (ours, our_messages), (theirs, their_messages) = outcomes
        self.assertEqual(our_messages, their_messages, self.trace("messages differ"))
        name = command[0].upper()
        if name in LEAVE and len(command) == 1:
            self.assertEqual(
                sorted(v[1] or b"" for v, _ in ours), sorted(v[1] or b"" for v, _ in theirs)
            )
            self.assertEqual([v[2] for v, _ in ours], [v[2] for v, _ in theirs])
            self.assertEqual([type(v) for v, _ in ours], [type(v) for v, _ in theirs])
        elif name == b"PUBSUB" and UNORDERED & set(command[1:2]) and len(command) < 4:
            self.assertEqual(*(sorted(frames[0][0]) for frames in (ours, theirs)))
        elif name == b"CLIENT":
            figures = [
                re.findall(rb"(flags|sub|psub|ssub|multi|cmd|resp)=(\S+)", frames[0][1])
                for frames in (ours, theirs)
            ]
            self.assertEqual(*figures, self.trace("CLIENT INFO differs"))
        else:
            raw = [[raw for _, raw in frames] for frames in (ours, theirs)]
            self.assertEqual(*raw, self.trace("replies differ"))

    def trace(self, what):
        lines = [f"{what}; seed {self.seed}; the last steps (client, command):"]
        return "\n".join(lines + [f"  {step}" for step in self.history[-15:]])

    # The tests below run sessions of many steps.

    def test_a_scripted_session(self):
        two, three, publisher = self.new_client(), self.new_client(), self.new_client()
        three.protocol = 3
        for connection in three.both:
            connection.call("HELLO", "3")
        script = [
            (two, b"SUBSCRIBE a b a"), (two, b"GET a"), (two, b"CLIENT LIST"), (two, b"CLIENT"),
            (two, b"NOPE"), (two, b"PING"), (two, b"PING x"), (two, b"PING x y"), (two, b"ECHO x"),
            (two, b"SELECT 1"), (two, b"AUTH x"), (two, b"HELLO 3"), (two, b"MULTI"),
            (two, b"PUBLISH a x"), (two, b"SUBSCRIBE"), (two, b"PSUBSCRIBE a* *"),
            (three, b"SUBSCRIBE a"), (three, b"SSUBSCRIBE s"), (three, b"CLIENT INFO"),
            (three, b"PING"), (three, b"GET a"), (three, b"PUBLISH a self"),
            (publisher, b"PUBLISH a 1"), (publisher, b"PUBLISH ab 2"), (publisher, b"SPUBLISH s 3"),
            (publisher, b"SPUBLISH a 4"), (publisher, b"PUBLISH s 5"), (publisher, b"PUBLISH"),
            (publisher, b"PUBSUB NUMSUB"), (publisher, b"PUBSUB NUMSUB a b zz a"),
            (publisher, b"PUBSUB NUMPAT"), (publisher, b"PUBSUB CHANNELS"),
            (publisher, b"PUBSUB CHANNELS a*"), (publisher, b"PUBSUB CHANNELS a b"),
            (publisher, b"PUBSUB SHARDCHANNELS"), (publisher, b"PUBSUB SHARDNUMSUB s a"),
            (publisher, b"PUBSUB"), (publisher, b"PUBSUB NOPE"), (publisher, b"PUBSUB NUMPAT x"),
        ]  # fmt: skip
        for client, line in script:
            self.run_step(client, line.split())
        two.subscribed[0] = {b"a", b"b"}
        for client, line in [
            (two, b"UNSUBSCRIBE zz"), (two, b"UNSUBSCRIBE"), (two, b"PING"), (two, b"RESET"),
            (two, b"GET a"), (two, b"CLIENT INFO"), (three, b"RESET"), (three, b"UNSUBSCRIBE"),
            (three, b"PUNSUBSCRIBE"), (three, b"SUNSUBSCRIBE x"), (three, b"PUBLISH a 1"),
        ]:  # fmt: skip
            self.run_step(client, line.split())
        self.assertGreater(self.messages, 8)

    def test_transactions(self):
        """In EXEC's array, each confirmation of SUBSCRIBE takes the place of a reply."""
        listener, client = self.new_client(), self.new_client()
        self.run_step(listener, [b"SUBSCRIBE", b"a"])
        for connection in client.both:
            for line in (b"MULTI", b"PUBLISH a 1", b"SUBSCRIBE q r", b"GET k", b"PUBLISH a 2"):
                connection.send(encode(*line.split()))
            connection.send(encode("EXEC"))
            for _ in range(5):
                connection.read_reply()
        # EXEC's array has four elements, one for each command. SUBSCRIBE of two channels sends two
        # confirmations, so a fifth reply follows the array.
        for _ in range(2):
            self.assertEqual(*(connection.read_reply()[1] for connection in client.both))
        for _ in range(2):
            self.assertEqual(*(connection.read_reply()[1] for connection in listener.both))
        client.subscribed[0] = {b"q", b"r"}
        self.run_step(client, [b"GET", b"k"])
        self.run_step(client, [b"UNSUBSCRIBE"])

    def test_client_reply_silences_no_confirmation(self):
        for protocol in ("2", "3"):
            outputs = []
            for server in self.servers:
                with server.connect() as connection:
                    connection.call("HELLO", protocol)
                    for line in (b"CLIENT REPLY OFF", b"SUBSCRIBE a", b"SUBSCRIBE", b"PING",
                                 b"UNSUBSCRIBE", b"CLIENT REPLY ON", b"CLIENT REPLY SKIP",
                                 b"SUBSCRIBE b", b"PING", b"QUIT"):  # fmt: skip
                        connection.send(encode(*line.split()))
                    outputs.append(connection.read_to_end())
            self.assertEqual(*outputs)

    def test_a_random_session(self):
        for _ in range(5):
            self.new_client()
        for _ in range(STEPS):
            self.random_step()
        for client in self.clients:
            # If one server had sent more bytes than the other, the comparison of this PING's
            # replies would fail.
            self.run_step(client, [b"PING", b"end"])
        print(f"{len(self.history)} steps, {self.messages} messages, seed {self.seed}")
        self.assertGreater(self.messages, STEPS / 10)

    def random_step(self):
        rng = self.rng
        client = rng.choice(self.clients)
        kind = rng.choices(
            ["publish", "listen", "leave", "ask", "other", "hello", "reset", "reconnect"],
            [50, 20, 8, 12, 8, 3, 1, 1],
        )[0]
        if kind == "publish":
            name = b"PUBLISH" if rng.random() < 0.8 else b"SPUBLISH"
            self.run_step(client, [name, rng.choice(CHANNELS), rng.choice(PAYLOADS)])
        elif kind in ("listen", "leave"):
            self.change_subscriptions(client, kind == "listen")
        elif kind == "ask":
            self.run_step(client, rng.choice([
                [b"PUBSUB", b"NUMSUB", *rng.sample(CHANNELS, 3)], [b"PUBSUB", b"NUMPAT"],
                [b"PUBSUB", b"CHANNELS"], [b"PUBSUB", b"CHANNELS", rng.choice(PATTERNS)],
                [b"PUBSUB", b"SHARDNUMSUB", *rng.sample(CHANNELS, 2)],
                [b"PUBSUB", b"SHARDCHANNELS"],
            ] if not client.is_restricted() else [[b"PUBSUB", b"NUMPAT"]]))  # fmt: skip
        elif kind == "other":
            self.run_step(client, rng.choice(
                [[b"PING"], [b"PING", b"x"], [b"GET", b"k"], [b"CLIENT", b"INFO"], [b"ECHO"]]
                if not client.is_restricted() else [[b"PING"], [b"PING", b"x"], [b"GET", b"k"]]
            ))  # fmt: skip
        elif kind == "hello" and not client.is_restricted():
            client.protocol = rng.choice([2, 3])
            for connection in client.both:
                connection.call("HELLO", client.protocol)
        elif kind == "reset":
            self.run_step(client, [b"RESET"])
            client.protocol, client.subscribed = 2, [set(), set(), set()]
        elif kind == "reconnect":
            self.reconnect(client)

    def change_subscriptions(self, client, listens):
        rng = self.rng
        name = rng.choice(sorted(LISTEN if listens else LEAVE))
        kind = (LISTEN if listens else LEAVE)[name]
        names = [rng.choice(PATTERNS if kind == 1 else CHANNELS) for _ in range(rng.randrange(4))]
        self.run_step(client, [name, *names])
        if listens:
            client.subscribed[kind] |= set(names)
        else:
            client.subscribed[kind] -= set(names or client.subscribed[kind])

    def reconnect(self, client):
        client.close()
        client.both = [server.connect() for server in self.servers]
        client.protocol, client.subscribed = 2, [set(), set(), set()]
        # The servers detect at different times that the old connections are closed, so the test
        # waits for both servers.
        expected = 1 + len(self.clients)
        for server in self.servers:
            with server.connect() as probe:
                wait_until(
                    lambda one=probe: len(one.call("CLIENT", "LIST").splitlines()) == expected,
                    "the end of old connections",
                    poll_every_s=0.005,
                )


if __name__ == "__main__":
    unittest.main()
