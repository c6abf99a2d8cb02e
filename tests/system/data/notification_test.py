#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests keyspace notifications. For random commands, the messages must be the same as in
redis-server. A replica must publish the same messages as its leader. With several I/O threads,
messages must keep their order.

BLOOMERY_SEED replays a run; BLOOMERY_NOTIFICATION_COMMANDS shortens it.
"""

import os
import random
import unittest

from harness import seed_from_environment
from harness.command_stream import CommandStream
from harness.counts import count
from harness.replication import ReplicaTest
from harness.resp import encode

COMMANDS = count("NOTIFICATION_COMMANDS")
ALL = "KEAmn"
FENCE = b"fence"


class Listener:
    """Collects all messages published on one server, until a marker message."""

    def __init__(self, server):
        self.subscriber, self.publisher = server.connect(), server.connect()
        self.subscriber.call("PSUBSCRIBE", "*")

    def take(self):
        """Returns all messages so far as pairs (channel, payload)."""
        self.publisher.call("PUBLISH", FENCE, FENCE)
        messages = []
        while True:
            _, _, channel, payload = self.subscriber.read_reply()[0]
            if channel == FENCE:
                return messages
            messages.append((channel, payload))

    def events(self):
        """Returns "event key" for each message in a __keyevent@ channel. "@database" follows if the
        database is not 0.
        """
        events = []
        for channel, payload in self.take():
            head, _, event = channel.decode("latin1").partition("__:")
            database = head.removeprefix("__keyevent@")
            if head != database:
                events.append(f"{event} {payload.decode()}" + f"@{database}" * (database != "0"))
        return events

    def close(self):
        self.subscriber.close()
        self.publisher.close()


class NotificationTest(ReplicaTest):
    def listen(self, server, classes=ALL):
        with server.connect() as connection:
            connection.call("CONFIG", "SET", "notify-keyspace-events", classes)
        listener = Listener(server)
        self.addCleanup(listener.close)
        return listener

    def connection_to(self, server, protocol="2"):
        connection = server.connect()
        connection.call("HELLO", protocol)
        self.addCleanup(connection.close)
        return connection

    def replicate(self, replica, leader):
        with replica.connect() as connection:
            self.follow(connection, leader.port)
            self.wait_for_link(connection)

    def wait_until_applied(self, leader, replica):
        with leader.connect() as ahead, replica.connect() as behind:
            self.wait_until_equal_offsets(ahead, behind)

    # The tests below compare our server with redis-server.

    def test_random_stream_publishes_the_same_as_redis(self):
        seed = seed_from_environment()
        rng = random.Random(seed)
        stream = CommandStream(rng)
        servers = [self.start_server("--io-threads", "2"), self.start_redis()]
        listeners = [self.listen(server) for server in servers]
        connections = [self.connection_to(server) for server in servers]
        sent = events = 0
        # Half of the time notify-keyspace-events is ALL. Random classes can exclude nearly all
        # messages, so the test requires a minimum number of messages only while it is ALL.
        sent_to_all = events_of_all = 0
        classes = ALL
        while sent < COMMANDS:
            commands = [stream.next() for _ in range(rng.choice([1, 5, 50, 200]))]
            data = b"".join(encode(*command) for command in commands)
            for connection in connections:
                connection.send(data)
            for connection in connections:
                for _ in commands:
                    connection.read_reply()
            ours, theirs = (listener.take() for listener in listeners)
            if ours != theirs:
                self.report(commands, ours, theirs, f"seed {seed}, after {sent} commands")
            sent += len(commands)
            events += len(ours)
            if classes == ALL:
                sent_to_all += len(commands)
                events_of_all += len(ours)
            if rng.random() < 0.02:
                classes = rng.choice([ALL, "".join(rng.sample("KEg$xedmnA", rng.randint(1, 6)))])
                for connection in connections:
                    connection.call("DISCARD")
                    connection.call("CONFIG", "SET", "notify-keyspace-events", classes)
        print(f"{sent} commands, {events} events, seed {seed}")
        self.assertGreater(events_of_all, sent_to_all / 10)

    def report(self, commands, ours, theirs, where):
        """Fails. The failure message has the first notifications that differ, and the commands on
        their keys.
        """
        same = len(os.path.commonprefix([ours, theirs]))
        differing = ours[same : same + 4], theirs[same : same + 4]
        names = {part.partition(b"__:")[2] for events in differing for e in events for part in e}
        names |= {payload for events in differing for _, payload in events}
        related = [command for command in commands if names & set(command)]
        self.fail(f"{where}\nours:    {differing[0]}\nredis's: {differing[1]}\n{related[:40]}")

    # The tests below use our server as a replica.

    def test_replica_publishes_its_leaders_changes(self):
        redis = self.start_redis("--repl-diskless-sync-delay", "0")
        redis.expect_log("")
        for leader in (self.start_server(), redis):
            replica = self.start_server()
            self.replicate(replica, leader)
            listeners = [self.listen(server, "EA") for server in (leader, replica)]
            connection = self.connection_to(leader)
            for line in ("SET a 1", "SET b 1 EX 100", "INCR a", "SETBIT bits 7 1", "RENAME a c",
                         "SELECT 3", "COPY c d", "SET c 1", "EXPIRE c 100", "PERSIST c", "DEL c",
                         "MULTI", "SET x 1", "APPEND x y", "EXEC", "PEXPIREAT x 1"):  # fmt: skip
                connection.call(*line.split())
            self.wait_until_applied(leader, replica)
            self.assertEqual(*(listener.events() for listener in listeners))

    # The tests below combine notifications with other features.

    def test_a_subscriber_sees_the_change(self):
        server = self.start_server("--io-threads", "3")
        with server.connect() as connection:
            connection.call("CONFIG", "SET", "notify-keyspace-events", "KA")
        subscriber, reader = server.connect(), self.connection_to(server)
        writer = self.connection_to(server)
        self.addCleanup(subscriber.close)
        subscriber.call("SUBSCRIBE", "__keyspace@0__:k")
        for number in range(2000):
            writer.send(encode("SET", "k", number))
            self.assertEqual(subscriber.read_reply()[0][2], b"set")
            self.assertEqual(reader.call("GET", "k"), b"%d" % number)
            writer.read_reply()

    def test_events_of_a_key_keep_the_order_of_its_changes(self):
        server = self.start_server("--io-threads", "3")
        listener = self.listen(server, "K$")
        writers = [self.connection_to(server) for _ in range(4)]
        data = encode("APPEND", "k", "x") + encode("SET", "k", "") + encode("SETRANGE", "k", 0, "y")
        transaction = encode("MULTI") + data + encode("EXEC")
        rounds = 300
        for writer in writers:
            writer.send(transaction * rounds)
        for writer in writers:
            for _ in range(rounds * 5):
                writer.read_reply()
        events = [payload for _, payload in listener.take()]
        self.assertEqual(events, [b"append", b"set", b"setrange"] * rounds * len(writers))

    def test_option_survives_a_restart(self):
        server = self.start_server("--notify-keyspace-events", "KEAn")
        with server.connect() as connection:
            value = connection.call("CONFIG", "GET", "notify-keyspace-events")[1]
        self.assertEqual(value, b"AnKE")
        listener = Listener(server)
        self.addCleanup(listener.close)
        self.connection_to(server).call("SET", "k", "v")
        self.assertEqual(listener.events(), ["new k", "set k"])


if __name__ == "__main__":
    unittest.main()
