# SPDX-License-Identifier: MIT
"""Generates random commands from a seed. They use few keys, so that commands meet the results of
earlier ones.

Two rules keep the replies of two servers comparable. First, no key may expire while the test runs.
So an expiry is far in the future, or it is in the past and the command deletes the key at once.
Second, no two relative expiries are equal, because their order would depend on the millisecond in
which each command arrives.
"""

import time

DATABASES = 3
SMALL_KEYS = [b"k%d" % index for index in range(28)] + [
    b"",
    b"\x00",
    b"\xff\xfe",
    b"a b",
    b"cr\r\nlf",
    b"$5",
    b"*1\r\n$4\r\nPING",
    b"{tag}x",
    b"quo\"te",
]
# Only these keys hold big strings. LCS never reads them, because that would need gigabytes of
# memory.
BIG_KEYS = [b"big:1", b"big:2", b"big:3"]
KEYS = SMALL_KEYS + BIG_KEYS

MAX_I64 = 2**63 - 1
GARBAGE = [
    b"", b"abc", b"-1", b"0", b"1.5", b"nan", b"inf", b"-inf", b"1e5", b" 1", b"1 ", b"+1",
    b"01",
    b"-0", b"0x10", b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808",
    b"18446744073709551616", b"4294967296", b"\x00\xff\r\n", b"(", b"%s%n",
]  # fmt: skip
NUMBERS = [b"0", b"1", b"-1", b"7", b"9999", b"10000", b"-5", b"123456789", b"9223372036854775807",
           b"-9223372036854775808", b"9223372036854775806"]  # fmt: skip
FLOATS = [b"0.1", b"3", b"-2.5", b"1e3", b"5.0e-3", b"1e17", b"0.00000000000000001", b"nan", b"inf",
          b"-inf", b"1e400", b"abc", b"", b" 1", b"3.0e", b"10000000000000000000000"]  # fmt: skip
UNKNOWN = [
    (b"NOSUCH",), (b"nosuch", b"a", b"b"), (b"x\r\ny", b"1\r\n2"), (b"",), (b"\xff\x00",),
    (b"LONG" * 60, b"z" * 200), (b"OBJECT", b"NOSUCH", b"k1"), (b"OBJECT",), (b"SET",),
    (b"OBJECT", b"ENCODING"),
]  # fmt: skip
TTL_COMMANDS = {b"TTL", b"PTTL", b"EXPIRETIME", b"PEXPIRETIME"}


class CommandStream:
    """Generates commands that depend only on `rng` and on the time when the stream is created.
    Absolute expiries count from `start_s`, which is one to two seconds before this time.
    """

    def __init__(self, rng):
        self.rng = rng
        self.start_s = int(time.time()) - 1
        self.used_ttls = set()
        self.makers = self._table()
        self.weights = [weight for weight, _ in self.makers]
        self.functions = [function for _, function in self.makers]

    def next(self):
        """Returns one command as a list of byte strings. About 5 % of the commands are made invalid
        on purpose.
        """
        maker = self.rng.choices(self.functions, self.weights)[0]
        command = [part if isinstance(part, bytes) else str(part).encode() for part in maker()]
        if self.rng.random() < 0.05:
            command = self._spoil(command)
        if self.rng.random() < 0.1:
            command[0] = command[0].lower()
        return command

    def _spoil(self, command):
        # Commands with EXAT or PXAT are not made invalid, because the change could set an expiry in
        # the past. The command would then leave an expired key, which DBSIZE may or may not count.
        # SCAN is not made invalid either, because each server has its own cursors.
        if {b"EXAT", b"PXAT", b"SCAN"} & {word.upper() for word in command}:
            return command
        kind = self.rng.randrange(3)
        if kind == 0 and len(command) > 1:
            return command[:-1]
        if kind == 1:
            return command + [self.rng.choice(GARBAGE)]
        if len(command) > 1:
            index = self.rng.randrange(1, len(command))
            return command[:index] + [self.rng.choice(GARBAGE)] + command[index + 1 :]
        return command

    # The methods below return random arguments.

    def key(self):
        return self.rng.choice(SMALL_KEYS)

    def any_key(self):
        return self.rng.choice(KEYS)

    def some_keys(self, most=4):
        return [self.key() for _ in range(self.rng.randint(1, most))]

    def value(self):
        kind = self.rng.randrange(5)
        if kind == 0:
            return self.rng.choice(NUMBERS)
        if kind == 1:
            return b"%d" % self.rng.randint(-20000, 20000)
        if kind == 2:
            return self.rng.choice(FLOATS)
        if kind == 3:
            return self.rng.randbytes(self.rng.choice([0, 1, 3, 8, 43, 44, 45, 64, 100]))
        return bytes(self.rng.choice(b"abcd") for _ in range(self.rng.randint(0, 40)))

    def ttl_s(self):
        while True:
            ttl_s = 1000 * self.rng.randint(100, 1_000_000)
            if ttl_s not in self.used_ttls:
                self.used_ttls.add(ttl_s)
                return ttl_s

    def bit_offset(self):
        kind = self.rng.randrange(12)
        if kind == 0:
            return self.rng.choice([-1, 2**32, 2**32 + 7, MAX_I64, -(2**63), 2**63, "abc", ""])
        return self.rng.randrange(64 if kind < 5 else 6000)

    def index(self):
        return self.rng.choice(
            [0, 1, 2, 5, 10, 100, -1, -2, -3, -10, -100, MAX_I64, -(2**63),
             self.rng.randint(-50, 50)]
        )  # fmt: skip

    def range_arguments(self):
        kind = self.rng.randrange(5)
        if kind == 0:
            return []
        if kind == 1:
            return [self.index()]
        unit = [] if kind == 2 else [self.rng.choice(["BIT", "BYTE", "bit", "NIBBLE"])]
        return [self.index(), self.index(), *unit]

    def maybe(self, *words):
        return list(words) if self.rng.random() < 0.5 else []

    def pattern(self):
        pieces = [*"*?k12[]^-\\b", "*", "[1-3]", "[^k]", "[3-1]", "[k\\]]", "\\k", "big:", "[b-"]
        return "".join(self.rng.choice(pieces) for _ in range(self.rng.randint(1, 6)))

    # Each method below returns one command with random arguments.

    def set_command(self):
        options = []
        for _ in range(self.rng.choice([0, 0, 1, 1, 1, 2, 3])):
            options += self.rng.choice(
                [
                    ["NX"], ["XX"], ["GET"], ["KEEPTTL"], ["EX", self.ttl_s()],
                    ["PX", self.ttl_s() * 1000], ["EXAT", self.start_s + self.ttl_s()],
                    ["PXAT", (self.start_s + self.ttl_s()) * 1000], ["EX", 0], ["PX", -5],
                    ["EX", MAX_I64], ["EX", "x"], ["bogus"], ["px"],
                ]
            )  # fmt: skip
        return ["SET", self.key(), self.value(), *options]

    def getex_command(self):
        options = self.rng.choice(
            [
                [], ["PERSIST"], ["EX", self.ttl_s()], ["PX", self.ttl_s() * 1000],
                ["EXAT", self.start_s + self.ttl_s()],
                ["PXAT", (self.start_s + self.ttl_s()) * 1000], ["EXAT", 1], ["PXAT", 5],
                ["EX", 0], ["EX", -1], ["EX", "x"], ["NX"],
                ["PERSIST", "EX", 10], ["EX"],
            ]
        )  # fmt: skip
        return ["GETEX", self.key(), *options]

    def expire_command(self):
        name = self.rng.choice(["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"])
        ttl = self.ttl_s()
        if name.endswith("AT"):
            ttl += self.start_s
        if name.startswith("P"):
            ttl *= 1000
        if self.rng.random() < 0.1:
            ttl = self.rng.choice([0, -1, 1 if name.endswith("AT") else -7, MAX_I64, -(2**63), "x"])
        flags = self.rng.choice(
            [[], [], ["NX"], ["XX"], ["GT"], ["LT"], ["XX", "GT"], ["NX", "XX"], ["GT", "LT"],
             ["QQ"]]
        )  # fmt: skip
        return [name, self.any_key(), ttl, *flags]

    def bitfield_command(self):
        name = "BITFIELD_RO" if self.rng.random() < 0.15 else "BITFIELD"
        out = [name, self.any_key()]
        for _ in range(self.rng.randint(0, 5)):
            kind = self.rng.choice(["GET", "GET", "SET", "INCRBY", "OVERFLOW"])
            if kind == "OVERFLOW":
                out += [kind, self.rng.choice(["WRAP", "SAT", "FAIL", "sat", "NEVER"])]
                continue
            out += [kind, self._field_type(), self._field_offset()]
            if kind != "GET":
                out.append(self.rng.choice([*NUMBERS, b"100", b"-100", b"255", b"x"]))
        return out

    def _field_type(self):
        if self.rng.random() < 0.06:
            return self.rng.choice(["u0", "u64", "i65", "i0", "u", "x8", "8", "u-1", ""])
        return self.rng.choice("u1 u2 u7 u8 i8 u16 i5 u63 i64 i1 u31".split())

    def _field_offset(self):
        kind = self.rng.randrange(16)
        if kind == 0:
            return self.rng.choice([-1, "#-1", "x", "#", 2**32, "#4294967296", MAX_I64, ""])
        return f"#{self.rng.randrange(40)}" if kind < 6 else self.rng.randrange(1500)

    def bitop_command(self):
        name = self.rng.choice(["AND", "OR", "XOR", "NOT", "and", "NAND"])
        sources = [self.any_key() for _ in range(self.rng.randint(1, 4))]
        if name == "NOT" and self.rng.random() < 0.8:
            sources = sources[:1]
        # If a source key may hold a big string, the destination must be one of BIG_KEYS.
        if any(source in BIG_KEYS for source in sources):
            return ["BITOP", name, self.rng.choice(BIG_KEYS), *sources]
        return ["BITOP", name, self.any_key(), *sources]

    def big_command(self):
        key = self.rng.choice(BIG_KEYS)
        offset = self.rng.choice([8 * 70_000, 1_000_003, 2_500_000, self.rng.randrange(3_000_000)])
        return self.rng.choice(
            [
                ["SETBIT", key, offset, self.rng.choice([0, 1, 1, 2])],
                ["GETBIT", key, self.rng.choice([offset, 2**32 - 1])],
                ["BITCOUNT", key, *self.range_arguments()],
                ["BITPOS", key, self.rng.choice([0, 1]), *self.range_arguments()],
                ["SETRANGE", key, offset // 16, self.value()],
                ["STRLEN", key],
                ["GETRANGE", key, offset // 8, offset // 8 + 20],
                ["DEL", key],
            ]
        )

    def setrange_command(self):
        offset = self.rng.choice([0, 1, 5, 44, 200, -1, 536870912, 2**32, MAX_I64, -(2**63)])
        # A string has at most 536870912 bytes. At this offset the value has at least one byte. So
        # the string would exceed the maximum, and both servers reject the command.
        value = self.value() or b"z" if offset == 536870912 else self.value()
        return ["SETRANGE", self.key(), offset, value]

    def lcs_command(self):
        options = []
        for _ in range(self.rng.choice([0, 1, 1, 2, 3])):
            options += self.rng.choice(
                [["LEN"], ["IDX"], ["MINMATCHLEN", self.rng.randint(-1, 5)], ["WITHMATCHLEN"],
                 ["Q"]]
            )  # fmt: skip
        return ["LCS", self.key(), self.key(), *options]

    def copy_command(self):
        options = self.rng.choice(
            [[], ["REPLACE"], ["DB", self.rng.randrange(DATABASES)], ["DB", 16], ["DB", "x"],
             ["REPLACE", "DB", 1], ["Q"]]
        )  # fmt: skip
        return ["COPY", self.key(), self.key(), *options]

    def _table(self):
        rng, key, any_key, value = self.rng, self.key, self.any_key, self.value
        return [
            (30, self.set_command),
            (20, lambda: ["GET", key()]),
            (25, lambda: ["SETBIT", key(), self.bit_offset(), rng.choice([0, 1, 1, 2, -1, "x"])]),
            (15, lambda: ["GETBIT", key(), self.bit_offset()]),
            (15, lambda: ["BITCOUNT", any_key(), *self.range_arguments()]),
            (15, lambda: ["BITPOS", any_key(), rng.choice([0, 1, "x"]), *self.range_arguments()]),
            (20, self.bitop_command),
            (30, self.bitfield_command),
            (15, self.big_command),
            (5, lambda: ["GETSET", key(), value()]),
            (5, lambda: ["GETDEL", key()]),
            (10, self.getex_command),
            (5, lambda: ["SETNX", key(), value()]),
            (4, lambda: ["SETEX", key(), rng.choice([self.ttl_s(), 0, -1, "x", MAX_I64]), value()]),
            (4, lambda: ["PSETEX", key(), rng.choice([self.ttl_s() * 1000, 0, -1]), value()]),
            (5, lambda: ["MGET", *self.some_keys()]),
            (4, lambda: ["MSET", *[part for k in self.some_keys() for part in (k, value())]]),
            (3, lambda: ["MSETNX", *[part for k in self.some_keys(2) for part in (k, value())]]),
            (8, lambda: ["APPEND", key(), value()]),
            (6, lambda: ["STRLEN", any_key()]),
            (8, lambda: [rng.choice(["GETRANGE", "SUBSTR"]), key(), self.index(), self.index()]),
            (8, self.setrange_command),
            (10, lambda: [rng.choice(["INCR", "DECR"]), key()]),
            (10, lambda: [rng.choice(["INCRBY", "DECRBY"]), key(), rng.choice(NUMBERS)]),
            (10, lambda: ["INCRBYFLOAT", key(), rng.choice(FLOATS)]),
            (5, self.lcs_command),
            (12, lambda: [rng.choice(["DEL", "UNLINK"]), *self.some_keys(3)]),
            (5, lambda: ["EXISTS", *self.some_keys()]),
            (4, lambda: ["TYPE", any_key()]),
            (3, lambda: ["TOUCH", *self.some_keys()]),
            (6, lambda: [rng.choice(["RENAME", "RENAMENX"]), key(), key()]),
            (6, self.copy_command),
            (3, lambda: ["MOVE", key(), rng.choice([0, 1, 2, 1, 16, -1, "x"])]),
            (2, lambda: ["KEYS", rng.choice(["*", "k1*", "k[1-3]", "?", "k\\*", "[^k]*", ""])]),
            (4, lambda: ["KEYS", self.pattern()]),
            (2, lambda: ["DBSIZE", *self.maybe()]),
            (0.3, lambda: ["FLUSHDB", *rng.choice([[], ["SYNC"], ["ASYNC"], ["NOW"]])]),
            (0.05, lambda: ["FLUSHALL"]),
            (0.5, lambda: ["SWAPDB", rng.randrange(DATABASES), rng.choice([0, 1, 2, 16, -1, "x"])]),
            (2, lambda: ["SELECT", rng.choice([0, 0, 0, 1, 2, 16, -1, "x", ""])]),
            (20, self.expire_command),
            (15, lambda: [rng.choice(sorted(TTL_COMMANDS)), any_key()]),
            (4, lambda: ["PERSIST", any_key()]),
            (8, lambda: ["OBJECT", rng.choice(["ENCODING", "REFCOUNT", "encoding"]), key()]),
            (6, lambda: ["MULTI"]),
            (12, lambda: ["EXEC"]),
            (2, lambda: ["DISCARD"]),
            (4, lambda: ["WATCH", *self.some_keys(2)]),
            (1, lambda: ["UNWATCH"]),
            (2, lambda: ["ECHO", value()]),
            (2, lambda: ["PING", *self.maybe(value())]),
            (2, lambda: list(rng.choice(UNKNOWN))),
            (1, lambda: ["SCAN", *rng.choice([["x"], [0, "COUNT", 0], [0, "Q"], [0, "TYPE"]])]),
        ]  # fmt: skip
