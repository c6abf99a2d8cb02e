#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Keyspace notifications: those of the commands that Redis has are compared with redis-server's,
message by message, the others with what docs/commands.md promises.

BLOOMERY_SEED replays a run; BLOOMERY_NOTIFICATION_COMMANDS shortens it.
"""

import os
import random
import time
import unittest

from command_stream import CommandStream
from harness import ServerTest, seed_from_environment
from replication_harness import ReplicaTest
from resp import ErrorReply, encode

COMMANDS = int(os.environ.get("BLOOMERY_NOTIFICATION_COMMANDS", "60000"))
ALL = "KEAmn"
FENCE = b"fence"
# Both servers, in turn, with a value of every kind of key that the commands below meet.
SCRIPT = """
SET a 1 | SET a 1 EX 100 | SET a 2 KEEPTTL | SET a 3 NX | SET b 3 XX | SET b 3 NX PX 100000
SET c 1 GET | SET c 2 GET | SETNX d 1 | SETNX d 2 | SETEX e 100 1 | PSETEX e 100000 1 | GETSET e 2
GETSET f 1 | GETDEL f | GETDEL f | GETEX e EX 100 | GETEX e PERSIST | GETEX e PERSIST | GETEX e
GETEX e EXAT 1 | GETEX none | MSET a 1 b 2 a 3 | MSETNX a 1 z 2 | MSETNX y 1 z 2 | APPEND y x
APPEND x y | SETRANGE x 3 abc | SETRANGE w 3 abc | SETRANGE v 3 "" | STRLEN none | GETRANGE none 0 1
INCR i | INCRBY i 3 | DECR i | DECRBY i 2 | INCRBYFLOAT i 1.5 | INCRBYFLOAT j 1.5 | INCR i
SETBIT bits 7 1 | SETBIT bits 7 1 | SETBIT bits 900 0 | SETBIT bits 900 0 | GETBIT none 1
BITFIELD bits SET u8 0 5 INCRBY u8 8 2 | BITFIELD bits SET u8 0 5 | BITFIELD fresh GET u8 0
BITFIELD fresh INCRBY u2 0 3 OVERFLOW FAIL INCRBY u2 0 3 | BITFIELD over OVERFLOW FAIL SET u2 0 9
BITFIELD_RO none GET u8 0 | BITCOUNT none | BITPOS none 1
BITOP AND dest bits none | BITOP OR dest bits a | BITOP NOT dest none | BITOP NOT dest none
BITOP XOR dest2 a b | BITOP DIFF dest2 | LCS a none | LCS none none2
DEL a nothing b a | UNLINK c d | EXPIRE i 100 | PEXPIRE i 100000 NX | PEXPIRE i 100000 XX
EXPIREAT i 99999999999 | EXPIRE i -1 | EXPIRE i 10 | PEXPIREAT j 1 | PERSIST y | EXPIRE y 100
PERSIST y | RENAME y r | RENAME r r | RENAME none r | SET s 1 EX 100 | RENAME s r | RENAMENX r x
RENAMENX r q | COPY q p | COPY q p | COPY q p REPLACE | COPY q p DB 1 | MOVE q 1 | MOVE q 1
SELECT 1 | SET q 5 | MOVE q 0 | EXISTS none q | TYPE none | TTL none | TOUCH none q | DUMP none
PERSIST none | EXPIRE none 1 | OBJECT ENCODING none | OBJECT FREQ none | MEMORY USAGE none
SELECT 0 | MULTI | SET m 1 | GET none | INCR m | DEL m | EXEC | MULTI | SET m 1 | DISCARD
SWAPDB 0 1 | FLUSHDB | SET a 1 | FLUSHALL | GET a | MGET a b c | SETBIT a -1 1 | INCR a x | SET t a
INCR t | APPEND t | WATCH t | SET t 1 | MULTI | SET u 1 | EXEC | RANDOMKEY | KEYS * | SCAN 0
"""  # fmt: skip


class Listener:
    """Everything that is published on one server, until a fence."""

    def __init__(self, server):
        self.subscriber, self.publisher = server.connect(), server.connect()
        self.subscriber.call("PSUBSCRIBE", "*")

    def take(self):
        """(channel, payload) of all messages so far."""
        self.publisher.call("PUBLISH", FENCE, FENCE)
        messages = []
        while True:
            _, _, channel, payload = self.subscriber.read_reply()[0]
            if channel == FENCE:
                return messages
            messages.append((channel, payload))

    def events(self):
        """'event key' of each message that names one, with the database where it is not 0."""
        told = []
        for channel, payload in self.take():
            head, _, event = channel.decode("latin1").partition("__:")
            database = head.removeprefix("__keyevent@")
            if head != database:
                told.append(f"{event} {payload.decode()}" + f"@{database}" * (database != "0"))
        return told

    def close(self):
        self.subscriber.close()
        self.publisher.close()


def words_of(line):
    return ["" if word == '""' else word for word in line.split()]


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

    # --- against redis-server ---

    def test_each_command_tells_what_redis_tells(self):
        servers = [self.start_server("--io-threads", "2"), self.start_redis()]
        listeners = [self.listen(server) for server in servers]
        connections = [self.connection_to(server) for server in servers]
        told = 0
        for line in SCRIPT.replace("\n", "|").split("|"):
            words = words_of(line)
            if not words:
                continue
            for connection in connections:
                connection.call(*words)
            ours, theirs = (listener.take() for listener in listeners)
            self.assertEqual(ours, theirs, line)
            told += len(ours)
        self.assertGreater(told, 200)

    def test_a_dump_restored_tells_what_redis_tells(self):
        servers = [self.start_server(), self.start_redis()]
        listeners = [self.listen(server) for server in servers]
        dumps = []
        for server in servers:
            connection = self.connection_to(server)
            connection.call("SET", "from", "text")
            dumps.append((connection, connection.call("DUMP", "from")))
        for words in (
            ("a", "0", None), ("a", "0", None), ("a", "0", None, "REPLACE"), ("b", "100000", None),
            ("b", "1", None, "REPLACE", "ABSTTL"), ("b", "1", None, "ABSTTL"),
            ("a", "99999999999999", None, "REPLACE", "ABSTTL"), ("c", "0", "damaged"),
        ):  # fmt: skip
            for connection, dump in dumps:
                connection.call("RESTORE", *(dump if word is None else word for word in words))
            self.assertEqual(*(listener.take() for listener in listeners), words)

    def test_a_random_stream_tells_what_redis_tells(self):
        seed = seed_from_environment()
        rng = random.Random(seed)
        stream = CommandStream(rng)
        servers = [self.start_server("--io-threads", "2"), self.start_redis()]
        listeners = [self.listen(server) for server in servers]
        connections = [self.connection_to(server) for server in servers]
        sent = told = 0
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
            told += len(ours)
            if rng.random() < 0.02:
                classes = rng.choice([ALL, "".join(rng.sample("KEg$xedmnA", rng.randint(1, 6)))])
                for connection in connections:
                    connection.call("DISCARD")
                    connection.call("CONFIG", "SET", "notify-keyspace-events", classes)
        print(f"{sent} commands, {told} events, seed {seed}")
        self.assertGreater(told, sent / 10)

    def report(self, commands, ours, theirs, where):
        """Fails with the first event that differs, and the commands on its key."""
        same = len(os.path.commonprefix([ours, theirs]))
        differing = ours[same : same + 4], theirs[same : same + 4]
        names = {part.partition(b"__:")[2] for events in differing for e in events for part in e}
        names |= {payload for events in differing for _, payload in events}
        related = [command for command in commands if names & set(command)]
        self.fail(f"{where}\nours:    {differing[0]}\nredis's: {differing[1]}\n{related[:40]}")

    def test_a_key_that_expires_tells_so(self):
        """By the tick, by a write, and by a read, where the read also tells that it missed."""
        outcomes = []
        for server in (self.start_server("--hz", "100"), self.start_redis("--hz", "100")):
            listener = self.listen(server, "Exm$")
            connection = self.connection_to(server)
            connection.call("SET", "ticked", "1", "PX", "1")
            told = []
            deadline = time.monotonic() + 10
            while "expired ticked" not in told and time.monotonic() < deadline:
                told += listener.events()
            outcomes.append(told)
        self.assertEqual(*outcomes)

    def test_an_access_after_the_expiry_tells_at_once(self):
        outcomes = []
        servers = (
            self.start_server("--hz", "1", "--enable-debug-command", "yes"),
            self.start_redis("--hz", "1", "--enable-debug-command", "yes"),
        )
        for server in servers:
            listener = self.listen(server, "Eg$xm")
            connection = self.connection_to(server)
            connection.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
            told = []
            for access in (
                ["GET", "k"], ["SET", "k", "1"], ["EXISTS", "k", "k"], ["DEL", "k"], ["TTL", "k"],
                ["MGET", "x", "k"], ["INCR", "k"], ["BITOP", "NOT", "l", "k"], ["MULTI"],
            ):  # fmt: skip
                connection.call("SET", "k", "1", "PX", "1")
                time.sleep(0.01)
                connection.call(*access)
                told.append(listener.events())
            connection.call("GET", "k")
            connection.call("GET", "k")
            connection.call("EXEC")
            told.append(listener.events())
            outcomes.append(told)
        self.assertEqual(*outcomes)

    def test_the_classes_are_shown_as_redis_shows_them(self):
        connections = [
            self.connection_to(server) for server in (self.start_server(), self.start_redis())
        ]
        for classes in ("KEA", "", "nKg", "g$lshzxetd", "KEm", "A", "gg$K", "q", "KEAq", "a"):
            replies = []
            for connection in connections:
                told = connection.call("CONFIG", "SET", "notify-keyspace-events", classes)
                replies.append((told, connection.call("CONFIG", "GET", "notify-keyspace-events")))
            self.assertEqual(*replies)

    # --- what Redis does not have ---

    def test_a_replica_tells_what_its_leader_sends(self):
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

    def test_a_replica_tells_of_filters(self):
        leader, replica = self.start_server(), self.start_server()
        self.replicate(replica, leader)
        listeners = [self.listen(server, "EA") for server in (leader, replica)]
        connection = self.connection_to(leader)
        for line in ("BF.RESERVE r 0.01 100", "BF.ADD r a", "BF.ADD r a", "BF.MADD r b c",
                     "BF.ADD fresh a", "BF.INSERT i ITEMS a b", "BF.MERGE m r i", "BF.CLEAR m",
                     "BF.RESERVE d 0.01 9 DELETABLE", "BF.ADD d a", "BF.DEL d a"):  # fmt: skip
            connection.call(*line.split())
        self.wait_until_applied(leader, replica)
        ours, theirs = (sorted(listener.events()) for listener in listeners)
        self.assertEqual(ours, theirs)
        self.assertIn("bloom.add r", ours)

    # --- what notifications meet ---

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

    def test_the_events_of_a_key_come_in_the_order_of_its_changes(self):
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
        told = [payload for _, payload in listener.take()]
        self.assertEqual(told, [b"append", b"set", b"setrange"] * rounds * len(writers))

    def test_a_slow_subscriber_does_not_fill_the_memory(self):
        server = self.start_server("--client-output-buffer-limit", "pubsub 1mb 1mb 1")
        listener = self.listen(server, "KEA")
        with server.connect() as stuck:
            stuck.call("PSUBSCRIBE", "__key*")
            writer = self.connection_to(server)
            before = server.resident_bytes()
            for _ in range(300):
                writer.pipeline([("SET", "k" * 10_000, "v")] * 10)
            self.assertTrue(stuck.is_closed_by_server())
            self.assertLess(server.resident_bytes() - before, 100 << 20)
        server.expect_log("reached its output buffer limit")
        listener.close()

    def test_the_option_outlives_a_restart(self):
        server = self.start_server("--notify-keyspace-events", "KEAn")
        with server.connect() as connection:
            value = connection.call("CONFIG", "GET", "notify-keyspace-events")[1]
        self.assertEqual(value, b"AnKE")
        listener = Listener(server)
        self.addCleanup(listener.close)
        self.connection_to(server).call("SET", "k", "v")
        self.assertEqual(listener.events(), ["new k", "set k"])

    def test_a_client_that_writes_and_listens_gets_its_reply_first(self):
        server = self.start_server("--notify-keyspace-events", "KA")
        connection = self.connection_to(server, "3")
        connection.call("SUBSCRIBE", "__keyspace@0__:k")
        connection.send(encode("MULTI") + encode("SET", "k", "1") + encode("INCR", "k"))
        connection.send(encode("EXEC"))
        replies = [connection.read_reply()[0] for _ in range(6)]
        self.assertEqual(replies[3], [b"OK", 2])
        self.assertEqual([push[2] for push in replies[4:]], [b"set", b"incrby"])
        self.assertNotIsInstance(replies[0], ErrorReply)


if __name__ == "__main__":
    unittest.main()
