# SPDX-License-Identifier: MIT
"""Defines the server configurations of the mode matrix, and its ways to log in to a server.

Each configuration is an object of class Configuration, and each way to log in is an object of class
Access. A new subclass overrides only what differs from the default server.
"""

import contextlib

from harness import wait_until
from harness.huge_pages import PIECE_BYTES, fill, huge_bytes, wait_for_huge_bytes
from harness.info import info
from harness.mode_matrix.cell_run import KEY_PREFIX, Client
from harness.replication import digest
from harness.resp import Connection, ErrorReply, encode
from harness.tls import TlsConnection


class Configuration:
    """The default configuration: a server without special options."""

    database = 3
    names = {}  # maps a command's original name to its name after rename-command

    @property
    def of_replicas(self):
        return self

    def options(self, test, port):
        """Returns the options of a server that clients and replicas reach at `port`."""
        return ()

    def redis_options(self, test, port):
        """Returns the options of a redis-server with this configuration."""
        return ()

    def address(self, port):
        """Returns the fields for this port in the cluster's topology document."""
        return {"port": port, "tls": 0}

    def connect(self, test, port):
        return Connection(port)

    def disturb(self, run, node):
        """Uses the feature of this configuration, such as eviction, on keys that the cell does not
        check.
        """

    def contents(self, run, node):
        return digest(node.operator)

    def compare(self, test, expected, found):
        test.assertEqual(expected, found)

    def check(self, run, node):
        """Checks that the configuration has taken effect."""


class RenamedCommands(Configuration):
    """Every command that a cell uses, except those of the handshake of replicas, is renamed."""

    def __init__(self):
        commands = """SET GET APPEND INCR GETEX SETBIT GETBIT SETRANGE BITFIELD BITOP BITCOUNT
            BF.RESERVE BF.ADD BF.MADD BF.INSERT BF.DEL BF.EXISTS BF.MEXISTS BF.CARD BF.MERGE
            BF.CLEAR BF.KADD BF.SCANDUMP BF.LOADCHUNK MSETEX DELEX MGET EXPIRE FAILOVER
            COPY DEL EXISTS PEXPIREAT PEXPIRETIME PERSIST MULTI EXEC SELECT DUMP RESTORE KEYS DBSIZE
            DEBUG SAVE BGSAVE BGREWRITEAOF REPLICAOF INFO""".split()
        self.names = {name: f"{name}-RENAMED" for name in commands}

    def options(self, test, port):
        renames = {**self.names, "FLUSHALL": ""}
        return [word for pair in renames.items() for word in ("--rename-command", *pair)]

    def check(self, run, node):
        reply = node.operator.connections[0].call("GET", KEY_PREFIX)
        run.test.assertIn("unknown command 'GET'", str(reply))


class TlsOnly(Configuration):
    def _options(self, test, port):
        return test.tls_files().server_options(
            port, "--port", 0, "--tls-replication", "yes", auth="yes"
        )

    options = redis_options = _options

    def address(self, port):
        return {"port": 0, "tls": port}

    def connect(self, test, port):
        return TlsConnection(port, test.tls_files().client_context(certificate="client"))

    def check(self, run, node):
        with contextlib.suppress(OSError, EOFError), Connection(node.port) as plain:
            run.test.fail(f"a client without TLS got {plain.call('PING')}")


class ReplicaOfCluster(Configuration):
    """The configuration of a replica of an emulated cluster. A server with cluster-enabled=emulated
    rejects REPLICAOF, so its replica runs without special options.
    """

    database = 0


class EmulatedCluster(Configuration):
    database = 0
    of_replicas = ReplicaOfCluster()

    def options(self, test, port):
        return ("--cluster-enabled", "emulated")

    def check(self, run, node):
        run.test.assertIn("CROSSSLOT", str(node.operator.call("MGET", "foo", "bar")))


class Eviction(Configuration):
    """The server evicts keys that the cell does not check (victims). The policy volatile-ttl
    chooses them, because they expire before any key of the cell. A restart may evict more victims,
    but must not restore evicted ones.
    """

    VICTIM_BYTES = 512 << 10
    EVICTED_MIN = 5
    MEMORY_MAX = "48mb"

    def options(self, test, port):
        # The default maxmemory-eviction-tenacity lets the server evict keys for half a millisecond
        # for each command. On a busy machine this is too short to evict enough keys, and the server
        # rejects big values.
        return ("--maxmemory", self.MEMORY_MAX, "--maxmemory-policy", "volatile-ttl",
                "--maxmemory-eviction-tenacity", "100")  # fmt: skip

    def evicted(self, node):
        return int(info(node.operator, "stats")["evicted_keys"])

    def disturb(self, run, node):
        wanted = self.evicted(node) + self.EVICTED_MIN
        while self.evicted(node) < wanted:
            for _ in range(5):
                victim = f"victim:{run.rng.randrange(10**9)}"
                # SETRANGE creates a long value by a command that is short in the append log.
                node.operator.run("SETRANGE", victim, self.VICTIM_BYTES, "end")
                node.operator.run("EXPIRE", victim, 10**6)

    def contents(self, run, node):
        keys = run.model.keys()
        return {
            "keys": dict(zip(keys, node.operator.run("DEBUG", "DIGEST-VALUE", *keys))),
            "victims": set(node.operator.run("KEYS", "victim:*")),
        }

    def compare(self, test, expected, found):
        test.assertEqual(expected["keys"], found["keys"])
        test.assertLessEqual(found["victims"], expected["victims"], "evicted keys are back")

    def check(self, run, node):
        run.test.assertGreater(self.evicted(node), 0)


class EvictingReplica(Eviction):
    """The configuration of a replica that evicts victims which its leader still has. After a
    promotion it is the leader, and its replica keeps these victims.
    """

    MEMORY_MAX = "36mb"

    def options(self, test, port):
        return (*super().options(test, port), "--replica-ignore-maxmemory", "no")

    def compare(self, test, expected, found):
        test.assertEqual(expected["keys"], found["keys"])


class LeaderOfEvictingReplica(Eviction):
    of_replicas = EvictingReplica()

    def compare(self, test, expected, found):
        test.assertEqual(expected["keys"], found["keys"])


class ClientEviction(Configuration):
    """The server disconnects a client that uses too much memory. The client has sent only a part of
    its SET command, so no key may change.
    """

    VALUE_BYTES = 4 << 20

    def options(self, test, port):
        return ("--maxmemory-clients", "1mb")

    def evicted(self, node):
        return int(info(node.operator, "stats")["evicted_clients"])

    def disturb(self, run, node):
        before = self.evicted(node)
        header = f"*3\r\n$3\r\nSET\r\n${len(KEY_PREFIX)}\r\n{KEY_PREFIX}\r\n"
        with self.connect(run.test, node.port) as greedy:
            run.access.log_in(Client([greedy], {}), "app")
            with contextlib.suppress(OSError):
                greedy.send(f"{header}${self.VALUE_BYTES}\r\n".encode("ascii"))
                greedy.send(bytes(self.VALUE_BYTES - 1))
            wait_until(lambda: self.evicted(node) > before, "the eviction of the client")

    def check(self, run, node):
        run.test.assertGreater(self.evicted(node), 0)


class SeveralDatabases(Configuration):
    """A configuration that also changes data in databases that the cell does not use. It restores
    and copies keys in these databases, and publishes messages.
    """

    def disturb(self, run, node):
        run_command = node.operator.run
        others = [number for number in range(6) if number != self.database]
        first, second = run.rng.sample(others, 2)
        run_command("SELECT", first)
        run_command("SET", "other", run.rng.randbytes(20))
        run_command("RESTORE", "copy", 0, run_command("DUMP", "other"), "REPLACE")
        run_command("PUBLISH", "channel", "message")
        run_command("COPY", "copy", "other", "DB", second, "REPLACE")
        run_command("PUBLISH", "channel", "message")
        run_command("SELECT", self.database)

    def check(self, run, node):
        node.operator.run("SELECT", self.database)
        run.test.assertGreater(len(info(node.operator, "keyspace")), 1)


class PausedClients(Configuration):
    """An operator pauses the writes of all clients. A write that arrives meanwhile must wait until
    the end of the pause.
    """

    KEY = f"{KEY_PREFIX}:paused"
    PAUSE_MS = 10**7

    def disturb(self, run, node):
        operator = node.operator
        before = operator.run("GET", self.KEY)
        value = b"%d" % run.rng.randrange(10**9)
        with self.connect(run.test, node.port) as writer:
            client = Client([writer], {})
            run.access.log_in(client, "app")
            run.select_database(node, client)
            operator.run("CLIENT", "PAUSE", self.PAUSE_MS, "WRITE")
            writer.send(encode("SET", self.KEY, value))
            run.test.assertEqual(operator.run("GET", self.KEY), before)
            run.test.assertFalse(writer.has_reply())
            operator.run("CLIENT", "UNPAUSE")
            run.test.assertEqual(writer.read_reply()[0], b"OK")
        run.test.assertEqual(operator.run("GET", self.KEY), value)

    def check(self, run, node):
        run.test.assertEqual(node.operator.run("EXISTS", self.KEY), 1)


class HugePages(Configuration):
    """The server moves the pieces of a large filter to huge pages while the cell runs. The cell
    does not check this filter, but sometimes replaces it during the move.
    """

    KEY = f"{KEY_PREFIX}:huge"
    REPLACED_SHARE = 0.3
    # The array takes about 37 MB. The server moves arrays of 32 MiB and more to huge pages.
    CAPACITY = 30_000_000

    def options(self, test, port):
        return ("--filter-huge-pages", "auto")

    def disturb(self, run, node):
        connection = node.operator.connections[0]
        if not connection.call("EXISTS", self.KEY) or run.rng.random() < self.REPLACED_SHARE:
            self.replace(node, connection)

    def replace(self, node, connection):
        connection.call("DEL", self.KEY)
        fill(connection, self.KEY, self.CAPACITY)
        wait_for_huge_bytes(node.server, connection, PIECE_BYTES)

    def check(self, run, node):
        connection = node.operator.connections[0]
        if wait_for_huge_bytes(node.server, connection, PIECE_BYTES):
            run.test.assertGreater(huge_bytes(connection), 0)


class Access:
    """The way to log in without configured users: the default user has all rights."""

    options = ()
    redis_options = ()
    migrate_words = ()  # arguments with which MIGRATE logs in at the target server
    etcd_password = None  # with a password, the etcd of a cluster has users

    def log_in(self, client, user):
        """Logs the client in as `user`: `operator` or `app`."""

    def check(self, run, node):
        """Checks that the server enforces the rights of the users."""


class AclUsers(Access):
    redis_options = ("--masteruser", "replica", "--masterauth", "secret of replica")
    migrate_words = ("AUTH2", "operator", "secret of operator")
    etcd_password = "secret of etcd"
    options = (
        "--user", "default", "off",
        "--user", "operator", "on", ">secret of operator", "~*", "&*", "+@all",
        "--user", "app", "on", ">secret of app", f"~{KEY_PREFIX}*", "+@read", "+@write", "+@bloom",
        "+@transaction", "+@connection", "-@dangerous",
        "--user", "replica", "on", ">secret of replica", "+psync", "+replconf", "+ping",
        "+clusterx", *redis_options,
    )  # fmt: skip

    def log_in(self, client, user):
        client.run("AUTH", user, f"secret of {user}")

    def check(self, run, node):
        with node.configuration.connect(run.test, node.port) as stranger:
            run.test.assertIn("NOAUTH", str(stranger.call("PING")))
        reply = node.app.call("GET", "key of another application")
        run.test.assertIsInstance(reply, ErrorReply)
        run.test.assertIn("NOPERM", reply.text)


CONFIGURATIONS = {
    "plain": Configuration(),
    "renamed": RenamedCommands(),
    "tls": TlsOnly(),
    "cluster": EmulatedCluster(),
    "eviction": Eviction(),
    "replica_eviction": LeaderOfEvictingReplica(),
    "client_eviction": ClientEviction(),
    "databases": SeveralDatabases(),
    "pauses": PausedClients(),
    "huge_pages": HugePages(),
}
ACCESSES = {
    "default": Access(),
    "acl": AclUsers(),
}
