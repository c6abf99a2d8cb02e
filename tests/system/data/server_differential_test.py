#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Sends commands about the server and its connections to our server and to redis-server. Replies
and messages must be equal, except for ids, addresses, times and sizes. docs/compatibility.md lists
every other difference.

BLOOMERY_SEED replays a run; BLOOMERY_SERVER_COMMANDS is the number of commands.
"""

import random
import re
import time
import unittest

from harness import DEADLINE_S, ServerTest, seed_from_environment, wait_until
from harness.counts import count
from harness.resp import ErrorReply, Push, encode
from harness.server_stream import Id, ServerStream

COMMANDS = count("SERVER_COMMANDS")
CONNECTIONS = 5
# Fields of CLIENT LIST to compare. The other fields are addresses, ages and sizes, or are missing
# in redis-server 7.0.
CLIENT_FIELDS = (b"id", b"name", b"flags", b"db", b"sub", b"psub", b"ssub", b"multi", b"cmd",
                 b"user", b"redir", b"resp")  # fmt: skip
FIELD = re.compile(rb"(\S+?)=(\S*)")
KINDS_OF_MESSAGES = (b"message", b"pmessage", b"invalidate")
# Options for which later releases of Redis accept more values than redis-server 7.0. The error of
# CONFIG SET lists all accepted values.
NEWER_CHOICES = {b"repl-diskless-load"}


class Client:
    """Holds one connection to each server, and the client id that each server has assigned."""

    def __init__(self, servers, protocol):
        self.both = [server.connect() for server in servers]
        # the queued commands of the open transaction; None outside of a transaction
        self.queued = None
        self.ids = [connection.call("CLIENT", "ID") for connection in self.both]
        for connection in self.both:
            connection.call("HELLO", protocol)

    def close(self):
        for connection in self.both:
            connection.close()


def is_message(value):
    return isinstance(value, Push) or (
        isinstance(value, list) and len(value) > 2 and value[0] in KINDS_OF_MESSAGES
    )


class ServerDifferentialTest(ServerTest):
    def setUp(self):
        self.seed = seed_from_environment()
        self.rng = random.Random(self.seed)
        # The duration of a command differs between the servers. So the tests set the slow log to
        # record either all commands or none.
        quick = ("--slowlog-log-slower-than", "-1")
        self.servers = [self.start_server("--io-threads", "2", *quick), self.start_redis(*quick)]
        self.servers[1].expect_log("Deprecation warning: Allowing a first arg")
        self.clients = [Client(self.servers, 2 + index % 2) for index in range(CONNECTIONS)]
        for client in self.clients:
            self.addCleanup(client.close)
        self.history = []
        self.errors = self.messages = self.replaced = 0
        self.past_ids = [{}, {}]
        self.ended = [set(), set()]  # for each server, the clients that it has closed

    def shared_options(self):
        """Returns the options that both servers have with equal values."""
        both = []
        for connection in self.clients[0].both:
            words = connection.call("CONFIG", "GET", "*")
            both.append(dict(zip(words[0::2], words[1::2])))
        shared = {name: value for name, value in both[1].items() if both[0].get(name) == value}
        return {name: value for name, value in shared.items() if name not in NEWER_CHOICES}

    def test_replies_and_messages_equal_those_of_redis(self):
        stream = ServerStream(self.rng, CONNECTIONS, self.shared_options())
        # This client receives keyspace notifications of all changes, and the invalidations that
        # other clients redirect to it.
        listener = self.clients[0]
        for connection in listener.both:
            connection.call("PSUBSCRIBE", "__key*__:*")
            connection.call("SUBSCRIBE", "__redis__:invalidate")
        for connection in self.clients[1].both:
            connection.call("CONFIG", "SET", "notify-keyspace-events", "KEA")
        for _ in range(COMMANDS):
            client = self.rng.choice(self.clients[1:])
            command = stream.next()
            # Inside a transaction, CLIENT TRACKING is skipped. Our server sends a transaction's
            # invalidations only after its end, when tracking might already be off.
            if client.queued is not None and command[:2] == [b"CLIENT", b"TRACKING"]:
                continue
            self.run_step(client, command)
        print(f"{COMMANDS} commands, {self.errors} errors, {self.messages} messages, "
              f"seed {self.seed}")
        self.assertLess(self.errors, COMMANDS / 2)

    def run_step(self, client, command):
        self.history.append((self.clients.index(client), command))
        outcomes = []
        for server in (1, 0):
            words = [
                self.clients[word.index].ids[server] if isinstance(word, Id) else word
                for word in command
            ]
            client.both[server].send(encode(*words))
            frames = [client.both[server].read_reply()]
            while is_message(frames[-1][0]):
                frames.append(client.both[server].read_reply())
            if command[0].upper() == b"EXEC":
                self.pull_apart(client.both[server], frames)
            outcomes.append(frames)
        theirs, ours = outcomes[0][-1], outcomes[1][-1]
        matches = ours[1] == theirs[1] or self.values_match(client, command, ours[0], theirs[0])
        self.record_transaction(client, command, theirs[0])
        heard_by_theirs = self.hear(1, self.messages_in(client, outcomes[0]), None)
        heard_by_ours = self.hear(0, self.messages_in(client, outcomes[1]), heard_by_theirs)
        self.errors += isinstance(theirs[0], ErrorReply)
        self.last_was_noperm = theirs[1].startswith(b"-NOPERM")
        if not matches:
            self.fail(self.trace(f"replies differ\nours:    {ours[1]!r}\nredis's: {theirs[1]!r}"))
        if heard_by_ours != heard_by_theirs:
            self.fail(self.trace(
                f"messages differ\nours:    {heard_by_ours}\nredis's: {heard_by_theirs}"
            ))
        self.messages += sum(map(len, heard_by_theirs))
        self.replace_ended()

    def replace_ended(self):
        """When a user's ACL rules change, both servers close the user's connections. Replaces these
        connections by new ones.
        """
        ours, theirs = self.ended
        if ours != theirs:
            self.fail(self.trace(f"closed connections differ\nours:    {ours}\nredis's: {theirs}"))
        for index in theirs:
            for server, number in enumerate(self.clients[index].ids):
                self.past_ids[server][number] = f"past connection {self.replaced}"
            self.clients[index].close()
            self.clients[index] = Client(self.servers, 2 + index % 2)
            self.addCleanup(self.clients[index].close)
            self.replaced += 1
        self.ended = [set(), set()]
        if theirs:
            self.wait_until_gone(self.clients[index])

    def wait_until_gone(self, client):
        """The two servers detect a closed connection at different times. Each poll sends CLIENT
        LIST to both servers, because the slow logs count requests and must stay equal.
        """
        wait_until(
            lambda: all([
                len(connection.call("CLIENT", "LIST").splitlines()) == len(self.clients)
                for connection in client.both
            ]),
            what="closed connections are gone",
        )  # fmt: skip

    def messages_in(self, client, frames):
        """Returns a list of messages for each connection. Only the list of `client` has messages:
        those that arrived before the reply to its command.
        """
        heard = [[] for _ in self.clients]
        heard[self.clients.index(client)] = [raw for _, raw in frames[:-1]]
        return heard

    def hear(self, server, heard, expected):
        """Returns a list for each connection of a server: the messages that arrive before the reply
        to a PING. In our server a message from another thread may arrive after this reply. So for
        our server this method waits for as many messages as Redis has sent (`expected`).
        """
        deadline = time.monotonic() + DEADLINE_S
        ended = self.ended[server]
        for index, client in enumerate(self.clients):
            connection = client.both[server]
            # If Redis has closed the client's connection, our server must also close it. Our server
            # may close it later, from another thread, so the test sends no command on it.
            if expected is not None and index in self.ended[1]:
                if connection.is_closed_by_server():
                    ended.add(index)
                continue
            # Inside MULTI, a PING would be queued. Redis has written its messages to this client
            # before the reply to the client's next command, which has read them.
            if client.queued is None:
                heard[index] += self.messages_before_fence(server, index)
            # The test waits for messages instead of sending another PING. Both servers must get
            # equally many commands, because SLOWLOG counts them.
            is_open = index not in ended
            while is_open and expected is not None and len(heard[index]) < len(expected[index]):
                if not connection.has_reply(max(0.0, deadline - time.monotonic())):
                    break
                heard[index].append(connection.read_reply()[1])
        # A redirected invalidation of all keys contains a null. Redis encodes it in the protocol of
        # the client that has read the keys, and our server in the protocol of the receiver.
        null, other_null = b"invalidate\r\n$-1\r\n", b"invalidate\r\n_\r\n"
        heard = [[raw.replace(other_null, null) for raw in messages] for messages in heard]
        # Invalidations that another thread redirects to this connection may arrive before or after
        # other messages, so they are sorted. tracking_test compares their order on one thread.
        def place(raw):
            return (True, raw) if b"invalidate\r\n" in raw else (False, b"")

        return [sorted(messages, key=place) for messages in heard]

    def messages_before_fence(self, server, index):
        """Returns the messages that arrive before the reply to a PING. Records a connection that
        the server has closed.
        """
        connection = self.clients[index].both[server]
        connection.send(encode("ECHO", "fence") if index else encode("PING", "fence"))
        messages = []
        while True:
            try:
                value, raw = connection.read_reply()
            except (EOFError, ConnectionResetError):
                self.ended[server].add(index)
                return messages
            if not is_message(value):
                return messages
            messages.append(raw)

    def pull_apart(self, connection, frames):
        """Redis 7.0 writes the invalidations of a transaction's own changes between the elements of
        EXEC's array. Moves them before EXEC's reply.
        """
        value, raw = frames.pop()
        while isinstance(value, list) and any(isinstance(part, Push) for part in value):
            news = [part for part in value if isinstance(part, Push)]
            for part in news:
                keys = b"$-1\r\n" if part[1] is None else encode(*part[1])
                frames.append((part, b">2\r\n$10\r\ninvalidate\r\n" + keys))
            value = [part for part in value if not isinstance(part, Push)]
            value += [connection.read_reply()[0] for _ in news]
        frames.append((value, raw))

    # The methods below compare the replies of our server and of Redis.

    def record_transaction(self, client, command, reply):
        name = command[0].upper()
        if name == b"MULTI" and reply == b"OK":
            client.queued = []
        elif reply == b"QUEUED":
            client.queued.append(command)
        elif name in (b"EXEC", b"DISCARD", b"RESET") and "wrong number" not in str(reply):
            client.queued = None

    def values_match(self, client, command, ours, theirs):
        """Returns whether two replies with different bytes are still equivalent."""
        if type(ours) is not type(theirs) or isinstance(ours, ErrorReply):
            return False
        if command[0].upper() == b"EXEC":
            return len(ours) == len(theirs) and all(
                (type(a) is type(b) and a == b) or self.values_match(client, queued, a, b)
                for queued, a, b in zip(client.queued, ours, theirs)
            )
        name = b"|".join(word.upper() for word in command[:2] if isinstance(word, bytes))
        compare = {
            b"CLIENT|LIST": self.client_lines_match,
            b"CLIENT|INFO": self.client_lines_match,
            b"CLIENT|ID": self.ids_match,
            b"CLIENT|GETREDIR": self.ids_match,
            b"CLIENT|TRACKINGINFO": self.tracking_matches,
            b"SLOWLOG|GET": self.slowlogs_match,
            b"LATENCY|HISTOGRAM": self.histograms_match,
            b"ACL|LOG": self.access_logs_match,
            b"ACL|GETUSER": self.users_match,
            b"ACL|LIST": self.users_match,
            b"ACL|CAT": lambda ours, theirs: set(ours) == {*theirs, b"bloom"},
            b"ACL|GENPASS": lambda ours, theirs: len(ours) == len(theirs),
        }.get(name)
        if name.startswith(b"HELLO"):
            compare = self.greetings_match
        if name.startswith(b"CONFIG|GET"):
            compare = self.options_match
        return compare is not None and compare(ours, theirs)

    def logical(self, server, number):
        """Returns a name for the connection with this client id. The name is the same for both
        servers. If no connection has this id, returns the id itself."""
        for index, client in enumerate(self.clients):
            if client.ids[server] == number:
                return f"connection {index}"
        return self.past_ids[server].get(number, number)

    def ids_match(self, ours, theirs):
        return self.logical(0, ours) == self.logical(1, theirs)

    def client_lines(self, server, text):
        lines = []
        for line in text.splitlines():
            fields = dict(FIELD.findall(line))
            for name in (b"id", b"redir"):
                fields[name] = self.logical(server, int(fields[name]))
            # The test ignores two flags that differ. Our server does not show that a watched key
            # has changed (d), and RESET of our server ends NO-EVICT (e).
            fields[b"flags"] = re.sub(rb"[de]", b"", fields[b"flags"]) or b"N"
            # While EXEC runs, our server already shows the client as being outside a transaction,
            # so `multi` and `flags` are not compared.
            if fields[b"cmd"] == b"exec":
                fields[b"multi"], fields[b"flags"] = b"-1", b"N"
            lines.append({name: fields[name] for name in CLIENT_FIELDS})
        return sorted(lines, key=lambda fields: str(fields[b"id"]))

    def client_lines_match(self, ours, theirs):
        return self.client_lines(0, ours) == self.client_lines(1, theirs)

    def tracking_matches(self, ours, theirs):
        if isinstance(ours, list):
            ours, theirs = (dict(zip(reply[0::2], reply[1::2])) for reply in (ours, theirs))
        both = []
        for server, reply in enumerate((ours, theirs)):
            reply = dict(reply)
            reply[b"redirect"] = self.logical(server, reply[b"redirect"])
            for name in (b"flags", b"prefixes"):
                reply[name] = sorted(reply[name])
            both.append(reply)
        return both[0] == both[1]

    def slowlogs_match(self, ours, theirs):
        """Compares numbers, arguments and names of clients of slow log entries, because times and
        addresses differ by server."""
        shapes = [
            [(entry[0], self.without_ids(server, entry[3]), entry[5]) for entry in log]
            for server, log in enumerate((ours, theirs))
        ]
        return shapes[0] == shapes[1]

    def without_ids(self, server, words):
        # If AUTH has too many arguments, the slow log of Redis shows them, although they may be
        # passwords. Our server hides them.
        if words[0].upper() == b"AUTH" and len(words) > 3 and server == 1:
            return [words[0], *[b"(redacted)"] * (len(words) - 1)]
        if words[0].upper() != b"CLIENT":
            return words
        return [
            self.logical(server, int(word)) if re.fullmatch(rb"[1-9]\d{0,8}", word) else word
            for word in words
        ]

    def histograms_match(self, ours, theirs):
        if isinstance(ours, list):
            ours, theirs = (dict(zip(reply[0::2], reply[1::2])) for reply in (ours, theirs))
        counts = []
        for reply in (ours, theirs):
            pairs = {
                name: dict(zip(one[0::2], one[1::2])) if isinstance(one, list) else one
                for name, one in reply.items()
            }
            counts.append({name: one[b"calls"] for name, one in pairs.items()})
        return counts[0] == counts[1]

    def users_match(self, ours, theirs):
        """Compares all fields of users except rules about commands. Our server and Redis 7.2 show
        these rules as given. Redis 7.0 shows other rules with the same effect. ACL DRYRUN compares
        the effects.
        """
        return self.without_rules(ours) == self.without_rules(theirs)

    def without_rules(self, reply):
        if isinstance(reply, bytes):
            return re.sub(rb" ?[-+][^ )]+", b"", reply)
        if isinstance(reply, dict):
            reply = [part for pair in reply.items() for part in pair]
        return [self.without_rules(part) for part in reply] if isinstance(reply, list) else reply

    def access_logs_match(self, ours, theirs):
        """Compares the entries of ACL LOG without their ids and times."""
        shapes = []
        for log in (ours, theirs):
            entries = [
                entry if isinstance(entry, dict) else dict(zip(entry[0::2], entry[1::2]))
                for entry in log
            ]
            shapes.append([
                [entry[name] for name in (b"count", b"reason", b"context", b"object", b"username")]
                for entry in entries
            ])
        return shapes[0] == shapes[1]

    def greetings_match(self, ours, theirs):
        if isinstance(ours, list):
            ours, theirs = (dict(zip(reply[0::2], reply[1::2])) for reply in (ours, theirs))
        own = (b"id", b"version", b"modules")
        return ours.keys() == theirs.keys() and all(
            ours[name] == theirs[name] for name in ours if name not in own
        )

    def options_match(self, ours, theirs):
        if isinstance(ours, list):
            ours, theirs = (dict(zip(reply[0::2], reply[1::2])) for reply in (ours, theirs))
        return ours == theirs

    def test_commands_of_restricted_users(self):
        """Both servers must refuse the same commands of users with random rules, with the same
        error texts."""
        stream = ServerStream(self.rng, CONNECTIONS, self.shared_options(), {"acl"})
        refused = 0
        for _ in range(COMMANDS // 100):
            user = b"user%d" % self.rng.randrange(5)
            rules = [stream.acl_rule() for _ in range(self.rng.randint(1, 6))]
            self.run_step(self.clients[1], [b"ACL", b"SETUSER", user, b"on", b">pass", *rules])
            client = Client(self.servers, 2 + self.rng.randrange(2))
            self.clients.append(client)
            self.run_step(client, [b"AUTH", user, b"pass"])
            for _ in range(40):
                command = stream.next()
                # These commands are skipped, because a change of a user may close the connection
                # that runs the test.
                if command[0] not in (b"ACL", b"RESET", b"HELLO", b"AUTH"):
                    self.run_step(client, command)
                    refused += self.last_was_noperm
            self.run_step(client, [b"ACL", b"WHOAMI"])
            client.close()
            self.clients.remove(client)
            self.wait_until_gone(self.clients[0])
            self.run_step(self.clients[1], [b"ACL", b"LOG", b"3"])
        self.assertGreater(refused, COMMANDS / 100)

    def test_monitor_shows_the_same_lines(self):
        stream = ServerStream(self.rng, CONNECTIONS, self.shared_options())
        watcher = self.clients[0]
        for connection in watcher.both:
            connection.call("MONITOR")
        compared = 0
        for _ in range(COMMANDS // 20):
            client = self.rng.choice(self.clients[1:])
            command = [word for word in stream.next() if isinstance(word, bytes)]
            # If commands of a transaction were rejected, MONITOR of Redis shows only the EXEC of
            # this transaction.
            if command[0].upper() in (b"HELLO", b"RESET") or command[:-1] == [b"EXEC"]:
                continue
            # If AUTH has too many arguments, MONITOR of Redis shows them all. Our server hides
            # them.
            is_hidden = command[0].upper() == b"AUTH" and len(command) > 3
            lines = []
            for server, connection in enumerate(client.both):
                connection.send(encode(*command))
                reply = connection.read_reply()
                while is_message(reply[0]):
                    reply = connection.read_reply()
                lines.append(self.monitored(server, client))
            if b"discarded because of" in reply[1]:
                continue
            if is_hidden and lines[1]:
                words = b"".join(b' "%s"' % word for word in command[1:])
                self.assertTrue(lines[1][-1].endswith(words), lines[1])
                hidden = b' "(redacted)"' * (len(command) - 1)
                lines[1][-1] = lines[1][-1][: -len(words)] + hidden
            self.assertEqual(*lines, command)
            compared += len(lines[0])
        self.assertGreater(compared, COMMANDS / 400)

    def monitored(self, server, client):
        """Returns the lines of MONITOR since the previous command, without times and ports."""
        fence = b"fence %d" % self.rng.randrange(1 << 30)
        other = self.servers[server].connect()
        other.call("ECHO", fence)
        other.close()
        lines = []
        while not lines or fence not in lines[-1]:
            line, _ = self.clients[0].both[server].read_reply()
            lines.append(re.sub(rb"^[\d.]+ \[(\d+) \S+\]", rb"TIME [\1 ADDRESS]", line))
        return lines[:-1]

    def trace(self, what):
        lines = [f"{what}\nseed {self.seed}; the last of {len(self.history)} steps:"]
        return "\n".join(lines + [f"  {step}" for step in self.history[-25:]])


if __name__ == "__main__":
    unittest.main()
