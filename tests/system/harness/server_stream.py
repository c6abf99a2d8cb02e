# SPDX-License-Identifier: MIT
"""Generates random commands about the server and its connections. CommandStream generates commands
on keys.

A word of a command may be an Id. The test replaces the Id by the client id of one of its
connections, which differs between the compared servers.
"""

import dataclasses

KEYS = [b"k1", b"k2", b"k3", b"user:1", b"user:2", b"{t}a"]
EVENT_CLASSES = b"KEg$xetdmnA"
NAMES = [b"", b"app", b"a.b-c_d", b"with space", b"line\nend", b"\x00", b"~!", b"\xff", b"x" * 300]
NUMBERS = [b"0", b"1", b"-1", b"5", b"100", b"9223372036854775807", b"-9223372036854775808",
           b"9223372036854775808", b"abc", b"", b"1.5"]  # fmt: skip
# Values for CONFIG SET, in addition to an option's own value.
VALUES = [b"yes", b"no", b"0", b"1", b"-1", b"7", b"100", b"1000000", b"1mb", b"2gb", b"10k", b"5x",
          b"abc", b"4294967296", b" 1", b"YES", b"No"]  # fmt: skip
# Options that the test does not set: they would break the test, or their effect depends on the
# machine.
UNTOUCHED = {
    b"activedefrag", b"appenddirname", b"appendfilename", b"appendonly", b"bind",
    b"cluster-announce-ip", b"cluster-node-timeout", b"databases", b"dbfilename", b"dir",
    b"enable-debug-command",
    b"latency-monitor-threshold", b"logfile", b"loglevel",
    b"maxclients", b"maxmemory", b"maxmemory-clients", b"maxmemory-policy", b"oom-score-adj",
    b"notify-keyspace-events", b"oom-score-adj-values", b"pidfile", b"port", b"protected-mode",
    b"repl-backlog-size", b"replica-announce-ip", b"requirepass", b"save",
    b"slave-announce-ip", b"slowlog-log-slower-than", b"slowlog-max-len", b"timeout",
    b"tracking-table-max-keys", b"aclfile", b"masterauth", b"client-query-buffer-limit",
    b"client-output-buffer-limit", b"cluster-announce-hostname",
}  # fmt: skip
# Options that are fixed at the start. Redis rejects setting them; Bloomery accepts their present
# value.
FIXED = {
    b"always-show-logo", b"aof-rewrite-cpulist", b"aof_rewrite_cpulist", b"bgsave-cpulist",
    b"bgsave_cpulist", b"bio-cpulist", b"bio_cpulist", b"cluster-config-file", b"cluster-enabled",
    b"cluster-port", b"daemonize", b"disable-thp", b"enable-module-command",
    b"enable-protected-configs", b"io-threads", b"io-threads-do-reads", b"rdbchecksum",
    b"replicaof", b"server-cpulist", b"server_cpulist", b"set-proc-title", b"slaveof",
    b"socket-mark-id", b"supervised", b"syslog-enabled", b"syslog-facility", b"syslog-ident",
    b"tcp-backlog", b"unixsocket", b"unixsocketperm",
}  # fmt: skip
# Commands that next() must not make wrong by adding a word or removing the last word. COMMAND
# without its subcommand would list all commands. CONFIG SET already has random values. If the last
# word of HELLO is wrong, Redis may have applied the earlier words before it rejects the command.
UNSPOILT = {b"COMMAND", b"CONFIG", b"SWAPDB", b"HELLO"}


@dataclasses.dataclass(frozen=True)
class Id:
    """Placeholder for the client id of the test's connection with this index."""

    index: int


FEATURES = ("notifications", "slowlog", "latency", "tracking", "acl")


class ServerStream:
    """`connections` is the number of connections. `options` maps each option that both servers know
    to its value at the start. `features` lists the families of commands to generate."""

    def __init__(self, rng, connections, options, features=FEATURES):
        self.rng = rng
        self.connections = connections
        self.options = options
        # Options of TLS are left out, because they need certificates.
        self.names = sorted(
            name for name in set(options) - UNTOUCHED if not name.startswith(b"tls-")
        )
        table = [
            (10, self.key_command), (6, self.client_command), (4, self.client_list),
            (3, self.config_get), (4, self.config_set), (1, lambda: ["CONFIG", "RESETSTAT"]),
            (1, self.connection_command), (1, self.transaction_command),
            (1, self.command_question),
        ]  # fmt: skip
        table += [(weight, maker) for name, weight, maker in (
            ("slowlog", 3, self.slowlog_command),
            ("latency", 2, self.latency_command),
            ("notifications", 2, self.events_command),
            ("tracking", 4, self.tracking_command),
            ("acl", 6, self.acl_command),
        ) if name in features]  # fmt: skip
        self.weights = [weight for weight, _ in table]
        self.makers = [maker for _, maker in table]

    def next(self):
        words = self.rng.choices(self.makers, self.weights)[0]()
        words = [word if isinstance(word, (bytes, Id)) else str(word).encode() for word in words]
        if self.rng.random() < 0.03 and len(words) > 2 and words[0] not in UNSPOILT:
            return words[:-1]
        if self.rng.random() < 0.03 and words[0] not in UNSPOILT:
            return words + [self.rng.choice([b"abc", b"", b"-1"])]
        return words

    def key(self):
        return self.rng.choice(KEYS)

    def id(self):
        if self.rng.random() < 0.1:
            return self.rng.choice([b"0", b"-1", b"abc", b"99999999"])
        return Id(self.rng.randrange(self.connections))

    def key_command(self):
        key, other = self.key(), self.key()
        return self.rng.choice([
            ["SET", key, "v"], ["SET", key, "1", "EX", 1000], ["SET", key, "1", "KEEPTTL"],
            ["GET", key], ["GET", other], ["MGET", key, other], ["DEL", key], ["DEL", key, other],
            ["UNLINK", key], ["INCR", key], ["INCRBY", key, 5], ["INCRBYFLOAT", key, "0.5"],
            ["APPEND", key, "x"], ["SETRANGE", key, 2, "yy"], ["SETRANGE", key, 0, ""],
            ["SETBIT", key, 7, 1], ["BITFIELD", key, "SET", "u8", 0, 9],
            ["BITFIELD", key, "GET", "u8", 0], ["BITOP", "OR", key, other, "k1"],
            ["EXPIRE", key, 500], ["EXPIRE", key, -1], ["PEXPIREAT", key, 1], ["PERSIST", key],
            ["RENAME", key, other], ["RENAMENX", key, other], ["COPY", key, other],
            ["COPY", key, other, "REPLACE"], ["MOVE", key, 1], ["GETDEL", key], ["SETNX", key, "n"],
            ["GETEX", key, "PERSIST"], ["GETEX", key, "EX", 700], ["GETEX", key, "PXAT", 1],
            ["GETSET", key, "g"], ["MSET", key, "1", other, "2"], ["MSETNX", key, "1", other, "2"],
            ["SETEX", key, 900, "e"], ["EXISTS", key], ["TTL", "nokey"], ["TYPE", key],
            ["STRLEN", key], ["GETBIT", key, 7], ["BITCOUNT", key], ["SWAPDB", 0, 0],
            ["FLUSHDB"] if self.rng.random() < 0.3 else ["TOUCH", key],
        ])  # fmt: skip

    def client_command(self):
        rng = self.rng
        return rng.choice([
            ["CLIENT", "SETNAME", rng.choice(NAMES)], ["CLIENT", "GETNAME"], ["CLIENT", "ID"],
            ["CLIENT", "INFO"], ["CLIENT", "NO-EVICT", rng.choice(["on", "OFF", "x"])],
            ["CLIENT", "UNBLOCK", self.id(), *rng.choice([[], ["TIMEOUT"], ["ERROR"], ["x"]])],
            ["CLIENT", "UNPAUSE"], ["CLIENT"],
            ["CLIENT", "PAUSE", rng.choice([b"-1", b"x", b""])],
            ["CLIENT", "REPLY", "x"], ["CLIENT", "NOSUCH"], ["CLIENT", "KILL", "x"],
            ["CLIENT", "KILL", "ID", self.rng.choice([b"0", b"-1", b"x", b"99999999"])],
            ["CLIENT", "KILL", "TYPE", rng.choice(["x", "replica", "MASTER"])],
            ["CLIENT", "KILL", "USER", rng.choice(["nobody", ""])],
            ["CLIENT", "KILL", "ADDR", "1.2.3.4:5"], ["CLIENT", "KILL", "LADDR", "1.2.3.4:5"],
            ["CLIENT", "KILL", "ID", "99999999", "SKIPME", rng.choice(["yes", "no", "x"])],
            ["CLIENT", "KILL", "ID"], ["CLIENT", "KILL", "1.2.3.4:5"],
        ])  # fmt: skip

    def client_list(self):
        rng = self.rng
        return rng.choice([
            ["CLIENT", "LIST"], ["CLIENT", "LIST", "ID", self.id(), self.id()],
            ["CLIENT", "LIST", "TYPE", rng.choice(["normal", "pubsub", "replica", "x"])],
            ["CLIENT", "LIST", "ID"], ["CLIENT", "LIST", "NOSUCH"],
        ])  # fmt: skip

    def config_get(self):
        rng = self.rng
        names = rng.sample(self.names, rng.randint(1, 3))
        # CONFIG GET ignores the case of names, so some names are sent in upper case.
        return ["CONFIG", "GET", *[name.upper() if rng.random() < 0.2 else name for name in names]]

    def config_set(self):
        rng = self.rng
        pairs = []
        for name in rng.sample(self.names, rng.choice([1, 1, 1, 2])):
            own = self.options[name]
            value = own if rng.random() < 0.4 else rng.choice(VALUES)
            if name in FIXED and value == own:
                value = b"another " + own
            pairs += [name if rng.random() < 0.97 else b"no-such-option", value]
        return ["CONFIG", "SET", *pairs]

    def connection_command(self):
        rng = self.rng
        return rng.choice([
            ["HELLO", rng.choice([2, 3])], ["HELLO", rng.choice([1, 4, "x"])],
            ["HELLO", 3, "SETNAME", rng.choice(NAMES)], ["HELLO", 2, "AUTH", "nobody", "x"],
            ["HELLO", 3, "AUTH", "default", ""], ["HELLO", 2, "NOSUCH"],
            ["AUTH", "x"], ["AUTH", "nobody", "x"], ["AUTH", "default", "any"], ["AUTH", "", ""],
            ["RESET"], ["PING"], ["ECHO", "x"], ["SELECT", 0], ["SELECT", 16],
            ["READONLY"], ["READWRITE"], ["ASKING"], ["CLUSTER", "INFO"], ["WAIT", 0, 0],
            ["ROLE"], ["LOLWUT", "x"] if rng.random() < 0 else ["DBSIZE"],
        ])  # fmt: skip

    def transaction_command(self):
        return self.rng.choice([["MULTI"], ["EXEC"], ["EXEC"], ["DISCARD"], ["WATCH", self.key()],
                                ["UNWATCH"]])  # fmt: skip

    def command_question(self):
        rng, key = self.rng, self.key()
        return rng.choice([
            ["COMMAND", "GETKEYS", "SET", key, "v"], ["COMMAND", "GETKEYS", "MSET", key, "1"],
            ["COMMAND", "GETKEYS", "GET"], ["COMMAND", "GETKEYS", "PING"],
            ["COMMAND", "GETKEYSANDFLAGS", "COPY", key, key], ["COMMAND", "GETKEYS", "NOSUCH"],
            ["COMMAND", "INFO", rng.choice(["get", "GET", "copy", "nosuch"])],
            ["COMMAND", "NOSUCH"],
            ["OBJECT", "ENCODING", key], ["MEMORY", "USAGE", "nokey"], ["OBJECT", "FREQ", key],
        ])  # fmt: skip

    def slowlog_command(self):
        rng = self.rng
        return rng.choice([
            ["SLOWLOG", "GET"], ["SLOWLOG", "GET", rng.choice(NUMBERS)], ["SLOWLOG", "LEN"],
            ["SLOWLOG", "RESET"], ["SLOWLOG", "NOSUCH"], ["SLOWLOG", "GET", 3],
            ["CONFIG", "SET", "slowlog-log-slower-than", rng.choice([0, -1, 0])],
            ["CONFIG", "SET", "slowlog-max-len", rng.choice([0, 2, 16, 128])],
            ["ECHO", b"y" * rng.choice([127, 128, 129, 300])],
            ["MGET", *([b"k"] * rng.choice([30, 31, 32, 33, 40]))],
        ])  # fmt: skip

    def latency_command(self):
        rng = self.rng
        return rng.choice([
            ["LATENCY", "LATEST"], ["LATENCY", "HISTORY", rng.choice(["command", "nosuch"])],
            ["LATENCY", "RESET"], ["LATENCY", "RESET", "command", "nosuch"],
            ["LATENCY", "GRAPH", "nosuch"], ["LATENCY", "NOSUCH"], ["LATENCY"],
            ["LATENCY", "HISTOGRAM", "nosuch"], ["LATENCY", "HISTOGRAM", "set"],
        ])  # fmt: skip

    def events_command(self):
        count = self.rng.randint(0, 5)
        classes = bytes(self.rng.choices(EVENT_CLASSES, k=count))
        if self.rng.random() < 0.5:
            classes = self.rng.choice([b"KEA", b"KA", b"EA", b"KEAm", b"", b"Kg$", b"q", b"KEn$g"])
        if b"A" in classes:
            # If notify-keyspace-events has `A` and `n`, CONFIG GET of Redis 7.0 omits `n`. If a
            # later CONFIG SET fails, Redis restores the value without `n`.
            classes = classes.replace(b"n", b"")
        return ["CONFIG", *self.rng.choice([["SET", "notify-keyspace-events", classes],
                                            ["GET", "notify-keyspace-events"]])]  # fmt: skip

    def tracking_command(self):
        rng = self.rng
        options = []
        for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
            options += rng.choice([
                ["BCAST"], ["PREFIX", rng.choice(["user:", "k", "", "user:1"])], ["OPTIN"],
                ["OPTOUT"], ["NOLOOP"], ["REDIRECT", self.id()], ["NOSUCH"], ["BCAST"],
            ])  # fmt: skip
        return rng.choice([
            ["CLIENT", "TRACKING", "ON", *options], ["CLIENT", "TRACKING", "ON", *options],
            ["CLIENT", "TRACKING", "OFF"], ["CLIENT", "TRACKINGINFO"], ["CLIENT", "GETREDIR"],
            ["CLIENT", "CACHING", rng.choice(["YES", "NO"])], ["CLIENT", "TRACKING", "x"],
        ])  # fmt: skip

    # The random ACL rules name commands and categories that both servers have, or that neither has.

    def acl_rule(self):
        rng = self.rng
        return rng.choice([
            b"on", b"off", b"nopass", b"resetpass", b"allkeys", b"~*", b"resetkeys", b"~user:*",
            b"~k?", b"%R~user:*", b"%W~k*", b"%RW~k1", b"%~x", b"%Q~x", b"&*", b"allchannels",
            b"&news.*", b"resetchannels", b"+@all", b"allcommands", b"-@all", b"nocommands",
            b"+get", b"+set", b"-set", b"-get", b"+@read", b"-@write", b"+config|get",
            b"-config|set", b"+config", b"+client|id", b"+nosuch", b"-@nosuch", b">secret",
            b"<secret", b"#" + b"ab" * 32, b"#xyz", b"!" + b"ab" * 32, b"reset", b"clearselectors",
            b"(+get ~user:*)", b"(%R~k* +@read)", b"(+set", b"()", b"+select|0", b"nosuch", b"~",
            b"sanitize-payload", b"skip-sanitize-payload", b"+@string", b"-@string", b"+@bitmap",
        ])  # fmt: skip

    def acl_command(self):
        rng = self.rng
        user = rng.choice([b"alice", b"bob", b"carol"])
        key = self.key()
        rules = [self.acl_rule() for _ in range(rng.choice([1, 1, 2, 4]))]
        return rng.choice([
            ["ACL", "SETUSER", user, *rules], ["ACL", "SETUSER", user, *rules],
            ["ACL", "SETUSER", user, *rules], ["ACL", "GETUSER", user], ["ACL", "USERS"],
            ["ACL", "DELUSER", user], ["ACL", "WHOAMI"], ["ACL", "DELUSER", "default"],
            ["ACL", "DRYRUN", user, "GET", key], ["ACL", "DRYRUN", user, "SET", key, "v"],
            ["ACL", "DRYRUN", user, "COPY", key, self.key()], ["ACL", "DRYRUN", user, "CONFIG"],
            ["ACL", "DRYRUN", user, "CONFIG", "GET", "x"], ["ACL", "DRYRUN", user, "NOSUCH"],
            ["ACL", "DRYRUN", user, "SET", key, "v", "GET"], ["ACL", "DRYRUN", user, "SET", key],
            ["ACL", "DRYRUN", user, "PUBLISH", "news.a", "m"], ["ACL", "DRYRUN", "nobody", "GET"],
            ["ACL", "DRYRUN", user, "BITFIELD", key, "GET", "u8", 0],
            ["ACL", "DRYRUN", user, "GETDEL", key], ["ACL", "DRYRUN", user, "MGET", key, "k3"],
            ["AUTH", user, "wrong"], ["ACL", "LIST"], ["ACL", "NOSUCH"],
            ["ACL", "LOG", "RESET"], ["ACL", "LOG", rng.choice(NUMBERS)], ["ACL", "GENPASS", 0],
            ["ACL", "SETUSER", b"with space"], ["ACL", "CAT", "nosuch"], ["ACL", "GENPASS", 5000],
            ["ACL", "LOAD"], ["ACL", "SAVE"],
        ])  # fmt: skip
