# SPDX-License-Identifier: MIT
"""The kinds of values of the mode matrix, each with an exact model.

Each kind of value is an object of class Kind. It has the server options that the kind needs, and a
function that makes the model of one run. From the commands and their replies, a model knows what
every later read must answer.
"""

import dataclasses
import typing

from harness.mode_matrix.cell_run import KEY_PREFIX
from harness.mode_matrix.filter_model import FilterModel

SECOND_MS = 1000


@dataclasses.dataclass(frozen=True)
class Kind:
    model: typing.Callable
    options: tuple = ()


def filters(*words, layout="native", version=2, **rules):
    """Returns a Kind of filters. BF.RESERVE creates them with the arguments `words`. Without
    such arguments, the first add creates a filter. `version` is that of the native layout.
    """
    options = ("--bf-layout", layout, "--bf-native-version", version)
    return Kind(lambda run: FilterModel(run, words, **rules), options)


BIT_OPERATIONS = {
    "AND": lambda one, other: one & other,
    "OR": lambda one, other: one | other,
    "XOR": lambda one, other: one ^ other,
    "DIFF": lambda one, other: one & ~other,
    "DIFF1": lambda one, other: other & ~one,
    "ANDOR": lambda one, other: one & other,
    "ONE": lambda one, other: one ^ other,
}


class Bitmaps:
    STEP_MS = SECOND_MS

    def __init__(self, run):
        self.rng = run.rng
        self.values = {f"{KEY_PREFIX}:bits:{i}": bytearray() for i in range(3)}

    def keys(self):
        return list(self.values)

    def begin(self, client):
        for key, value in self.values.items():
            value[:] = self.rng.randbytes(500)
            client.run("SET", key, value)

    def write(self, client):
        first, second, combined = self.values
        for _ in range(10):
            key, offset = self.rng.choice([first, second]), self.rng.randrange(5000)
            bit = self.rng.randrange(2)
            before = self.set_bit(key, offset, bit)
            assert client.run("SETBIT", key, offset, bit) == before, (key, offset)
        start, data = self.rng.randrange(600), self.rng.randbytes(20)
        self.overwrite(first, start, data)
        client.run("SETRANGE", first, start, data)
        index, byte = self.rng.randrange(500), self.rng.randrange(256)
        self.overwrite(second, index, bytes([byte]))
        name = self.rng.choice(list(BIT_OPERATIONS))
        client.run_transaction(
            ("BITFIELD", second, "SET", "u8", f"#{index}", byte),
            ("BITOP", name, combined, first, second),
        )
        size = max(len(self.values[first]), len(self.values[second]))
        both = (bytes(self.values[key]).ljust(size, b"\0") for key in (first, second))
        self.values[combined] = bytearray(map(BIT_OPERATIONS[name], *both))

    def set_bit(self, key, offset, bit):
        """Sets the bit in the model, and returns its previous value."""
        index, mask = offset // 8, 0x80 >> offset % 8
        byte = self.values[key][index] if index < len(self.values[key]) else 0
        self.overwrite(key, index, bytes([byte | mask if bit else byte & ~mask]))
        return int(bool(byte & mask))

    def overwrite(self, key, start, data):
        value = self.values[key]
        value.extend(bytes(max(0, start + len(data) - len(value))))
        value[start : start + len(data)] = data

    def check(self, client):
        for key, value in self.values.items():
            assert client.run("GET", key) == value, f"{key} differs"
            count = sum(bin(byte).count("1") for byte in value)
            assert client.run("BITCOUNT", key) == count, f"the bits of {key}"


class ExpiringStrings:
    """A model of strings: some never expire, some expire in the far future, and some expire in the
    next step.
    """

    STEP_MS = 10 * SECOND_MS
    LIFE_MS = 10**9 * SECOND_MS

    def __init__(self, run):
        self.rng = run.rng
        self.clock = run.clock
        self.values = {}  # Maps each key to (value, expiry); an expiry of -1 means none.
        self.soon_gone = {}  # Maps each key that expires soon to its expiry.

    def keys(self):
        return list(self.values)

    def begin(self, client):
        for number in range(6):
            self.set(client, f"{KEY_PREFIX}:string:{number}")

    def set(self, client, key):
        value, end = b"%d" % self.rng.randrange(10**6), self.clock.now_ms + self.LIFE_MS
        client.run("SET", key, value, "PXAT", end)
        self.values[key] = (value, end)

    def write(self, client):
        keys = self.rng.sample(list(self.values), 6)
        self.set(client, keys[0])
        value, end = self.values[keys[1]]
        client.run("APPEND", keys[1], "1")
        client.run_transaction(("INCR", keys[1]), ("SET", keys[2], "7", "KEEPTTL"))
        self.values[keys[1]] = (b"%d" % (int(value + b"1") + 1), end)
        self.values[keys[2]] = (b"7", self.values[keys[2]][1])
        later = self.clock.now_ms + 2 * self.LIFE_MS
        client.run("PEXPIREAT", keys[3], later)
        client.run("GETEX", keys[4], "PXAT", later)
        client.run("PERSIST", keys[5])
        for key, end in zip(keys[3:], (later, later, -1)):
            self.values[key] = (self.values[key][0], end)
        self.write_on_condition(client, keys[0], keys[1])
        for _ in range(3):
            key = f"{KEY_PREFIX}:soon:{self.rng.randrange(10**9)}"
            client.run("SET", key, "gone in the next step", "PX", self.STEP_MS // 2)
            self.soon_gone[key] = self.clock.now_ms + self.STEP_MS // 2

    def write_on_condition(self, client, first, second):
        """Runs commands that Redis 7 does not know. So a Redis 7 replica must receive the effect of
        these commands as other commands.
        """
        (value, _), end = self.values[first], self.clock.now_ms + 3 * self.LIFE_MS
        assert client.run("SET", first, "1", "IFEQ", value, "PXAT", end) == b"OK"
        assert client.run("SET", first, "2", "IFEQ", "another value") is None
        assert client.run("MSETEX", 1, second, "3", "XX", "PXAT", end) == 1
        self.values[first], self.values[second] = (b"1", end), (b"3", end)
        client.run("SET", f"{KEY_PREFIX}:lock", "mine", "PX", self.STEP_MS)
        assert client.run("DELEX", f"{KEY_PREFIX}:lock", "IFEQ", "mine") == 1
        self.soon_gone[f"{KEY_PREFIX}:lock"] = self.clock.now_ms

    def check(self, client):
        for key, (value, end) in self.values.items():
            assert client.run("GET", key) == value, f"{key} differs"
            assert client.run("PEXPIRETIME", key) == end, f"the expiry of {key}"
        gone = [key for key, end in self.soon_gone.items() if end <= self.clock.now_ms]
        if gone:
            assert client.run("EXISTS", *gone) == 0, "expired keys are there"


class BigStrings:
    """A model of a string above 32 MiB. The server receives such a value into memory of its own."""

    STEP_MS = SECOND_MS
    KEY = f"{KEY_PREFIX}:big"
    TILES = (33 << 20) // 64

    def __init__(self, run):
        self.rng = run.rng
        self.value = None
        self.writes = 0

    def keys(self):
        return [self.KEY]

    def begin(self, client):
        self.value = bytearray(self.rng.randbytes(64) * self.TILES)
        client.run("SET", self.KEY, self.value)

    def write(self, client):
        self.writes += 1
        if self.writes % 4 == 0:
            self.begin(client)
        start, data = self.rng.randrange(len(self.value) - 100), self.rng.randbytes(100)
        self.value[start : start + len(data)] = data
        client.run_transaction(("SETRANGE", self.KEY, start, data), ("APPEND", self.KEY, data))
        self.value += data

    def check(self, client):
        assert client.run("GET", self.KEY) == self.value, f"{self.KEY} differs"


KINDS = {
    "plain": filters("0.01", 60),
    "time_window": filters("0.01", 60, "WINDOW", 4000, "GENERATIONS", 4, window_s=4000),
    "item_window": filters("0.01", 60, "WINDOW", 120, "ITEMS", "GENERATIONS", 4, window_items=120),
    "deletable": filters("0.01", 60, "DELETABLE", deletable=True),
    "regions": filters("0.01", 60, "DELETABLE", "REGIONS", 4, deletable=True),
    "native_layout": filters(),
    "native_layout_1": filters(version=1),
    "many_layers_1": filters("0.01", 1, "EXPANSION", 1, version=1),
    "redisbloom_layout": filters(layout="redisbloom"),
    "valkey_bloom_layout": filters(layout="valkey-bloom"),
    "fingerprints_layout": filters(layout="fingerprints", deletable=True),
    "regions_layout": filters(layout="regions", deletable=True),
    "many_layers": filters("0.01", 1, "EXPANSION", 1),
    "bitmap": Kind(Bitmaps),
    "expiring_string": Kind(ExpiringStrings),
    # Without automatic rewrites of the log, which would often run when an event begins its own.
    "big_string": Kind(BigStrings, ("--auto-aof-rewrite-percentage", 0)),
}
STRINGS = ("bitmap", "expiring_string", "big_string")
FILTERS = [name for name in KINDS if name not in STRINGS]
