#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What clients say when they connect, byte order as they send it, for those that no test can run.

Each script is one pipeline: every command must get exactly one reply, errors included.
"""

import re
import unittest

from harness import ServerTest
from resp import ErrorReply, encode

# Commands that every client, tool or GUI may send at any time: known, with these subcommands.
EVERYDAY = """
APPEND AUTH BITCOUNT BITFIELD BITFIELD_RO BITOP BITPOS COPY DBSIZE DECR DECRBY DEL DISCARD DUMP
ECHO EXEC EXISTS EXPIRE EXPIREAT EXPIRETIME FLUSHALL FLUSHDB GET GETBIT GETDEL GETEX GETRANGE
GETSET HELLO INCR INCRBY INCRBYFLOAT INFO KEYS LASTSAVE LCS MGET MONITOR MOVE MSET MSETNX MULTI
PERSIST PEXPIRE PEXPIREAT PEXPIRETIME PING PSETEX PSUBSCRIBE PSYNC PTTL PUBLISH PUNSUBSCRIBE QUIT
RANDOMKEY READONLY READWRITE RENAME RENAMENX REPLCONF REPLICAOF RESET RESTORE ROLE SAVE BGSAVE
BGREWRITEAOF SCAN SELECT SET SETBIT SETEX SETNX SETRANGE SHUTDOWN SLAVEOF SSUBSCRIBE STRLEN
SUBSCRIBE SUBSTR SUNSUBSCRIBE SWAPDB SYNC TIME TOUCH TTL TYPE UNLINK UNSUBSCRIBE UNWATCH WAIT
WATCH ASKING FAILOVER BF.RESERVE BF.ADD BF.MADD BF.INSERT BF.EXISTS BF.MEXISTS BF.INFO BF.CARD
BF.SCANDUMP BF.LOADCHUNK CLIENT|ID CLIENT|INFO CLIENT|LIST CLIENT|KILL CLIENT|SETNAME
CLIENT|GETNAME CLIENT|SETINFO CLIENT|REPLY CLIENT|PAUSE CLIENT|UNPAUSE CLIENT|UNBLOCK
CLIENT|NO-EVICT CLIENT|NO-TOUCH CONFIG|GET CONFIG|SET CONFIG|RESETSTAT CONFIG|REWRITE
COMMAND|COUNT COMMAND|DOCS COMMAND|INFO COMMAND|LIST COMMAND|GETKEYS COMMAND|GETKEYSANDFLAGS
MODULE|LIST OBJECT|ENCODING OBJECT|FREQ OBJECT|IDLETIME OBJECT|REFCOUNT MEMORY|USAGE MEMORY|STATS
MEMORY|DOCTOR MEMORY|PURGE PUBSUB|CHANNELS PUBSUB|NUMSUB PUBSUB|NUMPAT SLOWLOG|GET SLOWLOG|LEN
SLOWLOG|RESET CLUSTER|INFO CLUSTER|SLOTS CLUSTER|SHARDS CLUSTER|NODES CLUSTER|MYID CLUSTER|KEYSLOT
LATENCY|DOCTOR LATENCY|GRAPH LATENCY|HISTOGRAM LATENCY|HISTORY LATENCY|LATEST LATENCY|RESET
ACL|CAT ACL|DELUSER ACL|DRYRUN ACL|GENPASS ACL|GETUSER ACL|LIST ACL|LOG ACL|SETUSER ACL|USERS
ACL|WHOAMI CLIENT|TRACKING CLIENT|CACHING CLIENT|TRACKINGINFO CLIENT|GETREDIR
""".split()
ERROR = object()  # any error
ANY = object()


class Says:
    """An error whose text fits the pattern."""

    def __init__(self, pattern):
        self.pattern = pattern


NO_CLUSTER = Says("^ERR This instance has cluster support disabled$")
# Four clients take any answer but an error for a promise of messages.
NO_MAINTENANCE = Says("^ERR unknown subcommand")
SETINFO = [
    (["CLIENT", "SETINFO", "LIB-NAME", "some-client(v1.0)"], b"OK"),
    (["CLIENT", "SETINFO", "LIB-VER", "1.2.3"], b"OK"),
]


class HandshakeTest(ServerTest):
    def setUp(self):
        self.server = self.start_server()

    def shake(self, script, *options):
        server = self.start_server(*options) if options else self.server
        with server.connect() as connection:
            connection.send(b"".join(encode(*words) for words, _ in script))
            replies = []
            for words, expected in script:
                value, _ = connection.read_reply()
                replies.append(value)
                with self.subTest(command=words):
                    self.check(value, expected)
            self.assertEqual(connection.call("PING", "end"), b"end", "replies out of step")
        return replies

    def check(self, value, expected):
        if expected is ERROR:
            self.assertIsInstance(value, ErrorReply)
        elif isinstance(expected, Says):
            self.assertIsInstance(value, ErrorReply)
            self.assertRegex(value.text, expected.pattern)
        elif isinstance(expected, re.Pattern):
            self.assertRegex(value, expected)
        else:
            self.assertNotIsInstance(value, ErrorReply)
            if expected is not ANY:
                self.assertEqual(value, expected)

    def test_everyday_commands_are_known(self):
        with self.server.connect() as connection:
            infos = connection.call("COMMAND", "INFO", *EVERYDAY)
        unknown = [name for name, info in zip(EVERYDAY, infos) if info is None]
        self.assertEqual(unknown, [])

    def test_redis_py_8(self):
        (hello, *_) = self.shake([
            (["HELLO", "3"], ANY),
            (["CLIENT", "MAINT_NOTIFICATIONS", "ON", "moving-endpoint-type", "internal-ip"],
             NO_MAINTENANCE),
            *SETINFO, (["SELECT", "2"], b"OK"),
        ])  # fmt: skip
        self.assertEqual(hello[b"proto"], 3)
        self.assertEqual(hello[b"server"], b"redis")
        self.assertEqual(hello[b"mode"], b"standalone")
        # Else the client refuses client-side caching.
        self.assertGreaterEqual(tuple(map(int, hello[b"version"].split(b"."))), (7, 4, 0))

    def test_node_redis_6(self):
        self.shake([
            (["HELLO", "3"], ANY), *SETINFO,
            (["CLIENT", "MAINT_NOTIFICATIONS", "ON", "moving-endpoint-type", "none"],
             NO_MAINTENANCE),
        ])  # fmt: skip

    def test_ioredis(self):
        *_, info, cluster = self.shake([
            (["client", "SETINFO", "LIB-NAME", "ioredis"], b"OK"),
            (["client", "SETINFO", "LIB-VER", "5.8.0"], b"OK"),
            (["info"], ANY), (["cluster", "INFO"], NO_CLUSTER),
        ])  # fmt: skip
        self.assertIn(b"\r\nloading:0\r\n", info)

    def test_valkey_glide(self):
        *_, info = self.shake([(["HELLO", "3"], ANY), *SETINFO, (["INFO", "REPLICATION"], ANY)])
        self.assertIn(b"role:master\r\n", info)

    def test_go_redis(self):
        """Password by HELLO; then a pipeline in which TRACKING and MAINT_NOTIFICATIONS may fail."""
        self.shake([
            (["hello", "3", "auth", "default", "secret", "setname", "app"], ANY),
            (["client", "maint_notifications", "on", "moving-endpoint-type", "none"],
             NO_MAINTENANCE),
            (["client", "setinfo", "lib-name", "go-redis(,go1.24)"], b"OK"),
            (["client", "setinfo", "lib-ver", "9.14.0"], b"OK"),
            (["client", "getname"], b"app"),
            (["bf.reserve", "f", "0.01", "100"], b"OK"),
            (["bf.info", "f"], ANY),
        ], "--requirepass", "secret")  # fmt: skip

    def test_go_redis_knows_every_field_of_bf_info(self):
        with self.server.connect() as connection:
            connection.call("BF.RESERVE", "f", "0.01", "100")
            fields = connection.call("BF.INFO", "f")[0::2]
        self.assertEqual(fields, [
            b"Capacity", b"Size", b"Number of filters", b"Number of items inserted",
            b"Expansion rate",
        ])  # fmt: skip

    def test_jedis_and_lettuce_fall_back_from_resp3(self):
        """A protocol that is not known must be said so, in words that clients look for."""
        self.shake([
            (["HELLO", "4"], Says("^NOPROTO ")),
            (["CLIENT", "SETINFO", "lib-name", "jedis"], b"OK"),
            (["CLIENT", "SETINFO", "lib-ver", "7.0.0"], b"OK"),
            (["SELECT", "1"], b"OK"), (["PING"], b"PONG"), (["CLUSTER", "SLOTS"], NO_CLUSTER),
        ])  # fmt: skip

    def test_jedis_logs_in_after_noauth(self):
        self.shake([
            (["HELLO", "3"], Says("^NOAUTH ")),
            (["AUTH", "secret"], b"OK"),
            (["HELLO", "3"], ANY),
        ], "--requirepass", "secret")  # fmt: skip

    def test_stack_exchange(self):
        """One pipeline, a failing AUTH in its midst; the second connection subscribes in RESP2."""
        echo = bytes(range(16))
        replies = self.shake([
            (["AUTH", "user", "nonsense"], Says("^WRONGPASS ")), (["HELLO", "3"], ANY),
            (["CLIENT", "SETNAME", "host(SE.Redis-v3)"], b"OK"), *SETINFO, (["CLIENT", "ID"], ANY),
            (["CONFIG", "GET", "timeout"], {b"timeout": b"0"}),
            (["CONFIG", "GET", "replica-read-only"], {b"replica-read-only": b"yes"}),
            (["CONFIG", "GET", "slave-read-only"], {b"slave-read-only": b"yes"}),
            (["CONFIG", "GET", "databases"], {b"databases": b"16"}),
            (["SENTINEL", "MASTERS"], Says("^ERR unknown command")),
            (["INFO", "replication"], ANY), (["INFO", "server"], ANY),
            (["CLUSTER", "NODES"], NO_CLUSTER), (["GET", "__Booksleeve_TieBreak"], None),
            (["ECHO", echo], echo),
        ])  # fmt: skip
        self.assertIn(b"redis_version:", replies[-4])
        self.shake([
            (["AUTH", "nobody", "nonsense"], Says("^WRONGPASS ")),
            (["SUBSCRIBE", "__Booksleeve_MasterChanged"],
             [b"subscribe", b"__Booksleeve_MasterChanged", 1]),
            (["UNSUBSCRIBE"], ANY),
        ])  # fmt: skip

    def test_predis_3(self):
        (hello, *_) = self.shake([(["HELLO", "2", "SETNAME", "predis"], ANY), *SETINFO])
        self.assertIsInstance(hello, list)
        self.assertEqual(hello[4:6], [b"proto", 2])

    def test_memtier(self):
        self.shake([(["HELLO", "2"], ANY), (["SELECT", "0"], b"OK"),
                    (["CLUSTER", "SLOTS"], NO_CLUSTER)])  # fmt: skip

    def test_redis_benchmark(self):
        self.shake([(["CONFIG", "GET", "save"], [b"save", b""]),
                    (["CONFIG", "GET", "appendonly"], [b"appendonly", b"no"])])  # fmt: skip

    def test_redis_insight(self):
        replies = self.shake([
            (["hello", "3"], ANY), (["info"], ANY), (["module", "list"], ANY),
            (["command", "info", "bf.info", "ft._list", "json.get"], ANY),
            (["config", "get", "databases"], {b"databases": b"16"}), (["dbsize"], 0),
            (["cluster", "info"], NO_CLUSTER), (["scan", "0", "MATCH", "*", "COUNT", "200"], ANY),
            (["client", "list"], ANY), (["slowlog", "get", "10"], ANY), (["memory", "stats"], ANY),
        ])  # fmt: skip
        (module,) = replies[2]
        self.assertEqual(module[b"name"], b"bf")
        self.assertGreaterEqual(module[b"ver"], 20820)
        known, *unknown = replies[3]
        self.assertEqual(known[0], b"bf.info")
        self.assertEqual(unknown, [None, None])

    def test_sentinel(self):
        self.server.expect_log("CONFIG REWRITE failed: .* running without a config file")
        self.shake([
            (["CLIENT", "SETNAME", "sentinel-a1b2c3d4-cmd"], b"OK"), (["PING"], b"PONG"),
            (["INFO"], re.compile(rb"\r\nrun_id:[0-9a-f]{40}\r\n")),
            (["PUBLISH", "__sentinel__:hello", "127.0.0.1,26379,x,0,m,127.0.0.1,6379,0"], 0),
            (["MULTI"], b"OK"), (["SLAVEOF", "NO", "ONE"], b"QUEUED"),
            (["CONFIG", "REWRITE"], b"QUEUED"),
            (["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"], b"QUEUED"),
            (["CLIENT", "KILL", "TYPE", "pubsub"], b"QUEUED"), (["EXEC"], ANY),
        ])  # fmt: skip

    def test_health_checks_of_proxies(self):
        """HAProxy's two ways, and what monit and scripts say by telnet."""
        for sent, expected in (
            (b"*1\r\n$4\r\nPING\r\n", rb"^\+PONG\r\n$"),
            (b"PING\r\ninfo replication\r\nQUIT\r\n", rb"^\+PONG\r\n.*role:master\r\n.*\+OK\r\n$"),
            (b"PING\nQUIT\n", rb"^\+PONG\r\n\+OK\r\n$"),
        ):
            with self.server.connect() as connection:
                connection.send(sent if b"QUIT" in sent else sent + b"QUIT\r\n")
                said = connection.read_to_end()
                if b"QUIT" not in sent:
                    said = said.removesuffix(b"+OK\r\n")
                self.assertRegex(said, re.compile(expected, re.DOTALL))


if __name__ == "__main__":
    unittest.main()
