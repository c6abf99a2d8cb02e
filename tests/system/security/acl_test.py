#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compares ACL rules, decisions and categories with redis-server. Also tests the users of the
configuration file, and the rights that a replica's `masteruser` needs.
"""

import random
import unittest

from harness import seed_from_environment, wait_until
from harness.replication import ReplicaTest
from harness.resp import ErrorReply, encode

ROUNDS = 1500
# Commands that both servers have. Random ACL rules allow or deny these commands.
COMMANDS = ("get set mget del exists config config|get config|set client client|list select ping "
            "publish subscribe psubscribe copy append acl|whoami keys bitop").split()
RULES = (
    [sign + name for sign in "+-" for name in COMMANDS]
    + [sign + "@" + name for sign in "+-" for name in ("read", "write", "admin", "pubsub", "all")]
    + ["on", "off", "nopass", "resetpass", ">a", ">b", "<a", "<b", "reset", "resetkeys", "allkeys",
       "~*", "~k*", "%R~r*", "%W~w*", "%rw~x", "%RR~a", "%~a", "%X~a", "~a b", "resetchannels",
       "allchannels", "&*", "&c*", "&c", "& x", "allcommands", "nocommands", "clearselectors",
       "(+get ~s*)", "(+@write %W~w*)", "((+get))", "(on)", "()", "(+nope)", "+nope", "-nope",
       "+@nope", "+select|0", "+select|", "-select|0", "+config|nope", "+config|get|x", "#zz",
       "!zz", "bogus", "", "+", "-", "~", "&", "sanitize-payload", "skip-sanitize-payload",
       "a\r\nb", "(+set", "~q)", ")"]
)  # fmt: skip
TRIALS = [
    ["GET", "k1"], ["GET", "r1"], ["GET", "w1"], ["GET", "s1"], ["SET", "k1", "v"],
    ["SET", "w1", "v"], ["SET", "r1", "v", "GET"], ["MGET", "k1", "r1", "w1"], ["DEL", "k1", "q"],
    ["COPY", "r1", "w1"], ["COPY", "w1", "r1"], ["EXISTS", "w1"], ["APPEND", "x", "y"],
    ["BITOP", "OR", "w1", "r1", "k1"], ["CONFIG", "GET", "x"], ["CONFIG", "SET", "x", "y"],
    ["CLIENT", "LIST"], ["SELECT", "0"], ["SELECT", "1"], ["PING"], ["PUBLISH", "c1", "m"],
    ["SUBSCRIBE", "c", "d"], ["PSUBSCRIBE", "c*"], ["PSUBSCRIBE", "c?"], ["KEYS", "*"],
    ["AUTH", "x"],
    ["ACL", "WHOAMI"], ["ACL", "LIST"], ["nope"], ["GET"],
]  # fmt: skip


class AclDifferentialTest(ReplicaTest):
    def setUp(self):
        self.rng = random.Random(seed_from_environment())
        servers = [self.start_server(), self.start_redis()]
        servers[1].expect_log("Deprecation warning: Allowing a first arg")
        self.both = [self.connect(server) for server in servers]

    def replies(self, *command):
        for connection in self.both:
            connection.send(encode(*command))
        return [connection.read_reply()[0] for connection in self.both]

    def compare(self, *command):
        ours, theirs = self.replies(*command)
        self.assertEqual(ours, theirs, command)
        return ours

    def test_random_rules(self):
        """Applies random rules on both servers. Compares their errors, the decisions of ACL DRYRUN,
        and the fields of ACL GETUSER except `commands`.
        """
        refused = allowed = 0
        self.compare("ACL", "SETUSER", "u")
        for _ in range(ROUNDS):
            rules = self.rng.choices(RULES, k=self.rng.randrange(1, 5))
            refused += isinstance(self.compare("ACL", "SETUSER", "u", *rules), ErrorReply)
            for trial in self.rng.choices(TRIALS, k=4):
                allowed += self.compare("ACL", "DRYRUN", "u", *trial) == b"OK"
            ours, theirs = self.replies("ACL", "GETUSER", "u")
            # GETUSER's rules about commands are not compared. Redis computes these rules from the
            # allowed commands, but our server returns the rules as given.
            self.assertEqual(ours[:4] + ours[6:10], theirs[:4] + theirs[6:10])
            self.assertEqual([s[2:] for s in ours[11]], [s[2:] for s in theirs[11]])
        self.assertGreater(refused, ROUNDS / 10)
        self.assertGreater(allowed, ROUNDS / 10)

    def test_categories(self):
        ours, theirs = self.replies("ACL", "CAT")
        self.assertEqual([name for name in ours if name != b"bloom"], theirs)
        known = [{name for name in c.call("COMMAND", "LIST")} for c in self.both]
        both = known[0] & known[1]
        for category in theirs:
            sets = [set(names) for names in self.replies("ACL", "CAT", category)]
            for names in sets:
                names &= {n for n in names if n.split(b"|")[0] in both}
            subcommands = {n for n in sets[0] ^ sets[1] if b"|" in n}
            self.assertEqual(sets[0] - subcommands, sets[1] - subcommands, category)


class AclTest(ReplicaTest):
    def test_users_of_the_configuration(self):
        server = self.start_server(
            "--user", "alice", "on", ">p", "~a*", "+@read", "--requirepass", "secret"
        )
        client = self.connect(server)
        self.assertIn("NOAUTH", str(client.call("PING")))
        self.assertEqual(client.call("AUTH", "alice", "p"), b"OK")
        self.assertEqual(client.call("GET", "a"), None)
        self.assertIn("NOPERM", str(client.call("SET", "a", "1")))
        self.assertEqual(client.call("AUTH", "secret"), b"OK")
        self.assertEqual(client.call("SET", "a", "1"), b"OK")

    def test_a_replica_needs_few_rights(self):
        leader = self.start_server("--repl-diskless-sync-delay", "0", "--requirepass", "secret")
        admin = self.connect(leader)
        admin.call("AUTH", "secret")
        admin.call("ACL", "SETUSER", "repl", "on", ">p", "+psync", "+replconf", "+ping")
        admin.call("SET", "k", "v")
        replica = self.start_server("--masteruser", "repl", "--masterauth", "p")
        client = self.connect(replica)
        # A replica applies its leader's stream whatever rights its own users have.
        client.call("ACL", "SETUSER", "default", "-set")
        self.follow(client, leader.port)
        self.wait_for_link(client)
        admin.call("SET", "k2", "v2")
        wait_until(lambda: client.call("GET", "k2") == b"v2", what="the write to arrive")
        self.assertIn("NOPERM", str(client.call("SET", "x", "y")))


if __name__ == "__main__":
    unittest.main()
