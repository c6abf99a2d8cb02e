# SPDX-License-Identifier: MIT
"""Writers that know which states a server may have after a crash.
Each Writer has its own keys and sends pipelines of random writes over one connection. The server
executes the writes of one connection in order. After a crash it must therefore have the state after
some prefix of these writes, which includes all acknowledged writes. A transaction counts as one
write. Writer.find_prefix() replays the writes in a Model to find this prefix.
"""

import random
import threading
import time

from harness.resp import Connection, ErrorReply, encode
from harness.waiting import DEADLINE_S, wait_until

FILTER_CAPACITY = 50
BITMAP_BITS = 2048
# Arguments of BF.INSERT for both kinds of deletable filters, with and without growth.
DELETABLE = [
    ("CAPACITY", 2000, "DELETABLE"),
    ("CAPACITY", 2000, "DELETABLE", "REGIONS", 4),
    ("CAPACITY", 40, "DELETABLE"),
    ("CAPACITY", 40, "DELETABLE", "REGIONS", 4),
]
# Arguments of BF.INSERT for filters with a window. In `w2` the first layer of a generation may be
# too small for the generation's items; then the filter adds a second layer.
WINDOW_ITEMS = 60
WINDOWS = {
    "w1": ("CAPACITY", WINDOW_ITEMS, "WINDOW", WINDOW_ITEMS, "ITEMS", "GENERATIONS", 3),
    "w2": ("CAPACITY", WINDOW_ITEMS // 3, "WINDOW", WINDOW_ITEMS, "ITEMS", "GENERATIONS", 3),
}
FILTER_KINDS = [f"d{i}" for i in range(len(DELETABLE))] + list(WINDOWS)
ANY_COUNT = (0, 1 << 60)


def is_uncertain(reply):
    """Returns whether the reply reports a failed append log. Such a write may be kept or lost."""
    return isinstance(reply, ErrorReply) and reply.text.startswith("IOERR")


class Step:
    """One write or one transaction of a Writer, with its reply if one has arrived."""

    __slots__ = ("kind", "key", "value", "reply", "acked_at", "was_refused")

    def __init__(self, kind, key, value=None):
        self.kind = kind
        self.key = key
        self.value = value
        self.reply = None
        self.acked_at = None
        self.was_refused = False

    def encode(self):
        key, value = self.key, self.value
        if self.kind == "multi":
            first, second, count = key
            parts = [("MULTI",), ("SET", first, value), ("SET", second, value), ("INCR", count)]
            return b"".join(encode(*part) for part in [*parts, ("EXEC",)])
        if self.kind in ("bf.madd", "bf.del"):
            return encode(self.kind.upper(), key, *value)
        if self.kind == "bf.insert":
            options = WINDOWS[key[-2:]] if is_window(key) else DELETABLE[int(key[-1])]
            return encode("BF.INSERT", key, *options, "ITEMS", *value)
        if self.kind == "bf.add":
            return encode("BF.ADD", key, value)
        if self.kind == "setbit":
            return encode("SETBIT", key, *value)
        if self.kind == "bitfield":
            return encode("BITFIELD", key, "INCRBY", "u16", f"#{value[0]}", value[1])
        if self.kind == "set":
            return encode("SET", key, value)
        return encode(self.kind.upper(), key)

    @property
    def reply_count(self):
        return 5 if self.kind == "multi" else 1

    @property
    def keys(self):
        return self.key if self.kind == "multi" else (self.key,)

    def take_reply(self, replies):
        last = replies[-1]
        if is_uncertain(last):
            return  # the log failed, so the write may be kept or lost, as without a reply
        self.reply = last
        self.acked_at = time.monotonic()
        self.was_refused = isinstance(last, ErrorReply)

    def items(self):
        return [self.value] if self.kind == "bf.add" else self.value

    def ones(self):
        return self.reply if self.kind == "bf.add" else self.reply.count(1)


def is_window(key):
    return ":bf:w" in key


def change_filter(before, step):
    """Returns the least and the greatest possible cardinality of the filter after the step."""
    if is_window(step.key):
        return ANY_COUNT
    low, high = before or (0, 0)
    if step.kind == "bf.del":
        if step.reply is None:
            return (max(0, low - len(step.items())), high)
        return (max(0, low - step.ones()), high - step.ones())
    if step.reply is None:
        return (low, high + len(step.items()))
    return (low + step.ones(), high + step.ones())


def set_bit(before, position, bit):
    value = bytearray(before or b"")
    if len(value) <= position // 8:
        value += bytes(position // 8 + 1 - len(value))
    mask = 0x80 >> position % 8
    value[position // 8] = value[position // 8] | mask if bit else value[position // 8] & ~mask
    return bytes(value)


def increment_field(before, index, by):
    value = bytearray(before or b"")
    if len(value) < index * 2 + 2:
        value += bytes(index * 2 + 2 - len(value))
    at = slice(index * 2, index * 2 + 2)
    value[at] = ((int.from_bytes(value[at], "big") + by) & 0xFFFF).to_bytes(2, "big")
    return bytes(value)


class Model:
    """The values that one writer's keys must have; a key that must not exist has no entry."""

    def __init__(self, values=None):
        self.values = dict(values or {})

    def apply(self, step):
        if step.was_refused:
            return
        values, key = self.values, step.key
        before = values.get(key) if step.kind != "multi" else None
        if step.kind == "multi":
            first, second, count = key
            values[first] = values[second] = step.value
            values[count] = b"%d" % (int(values.get(count, 0)) + 1)
        elif step.kind.startswith("bf."):
            values[key] = change_filter(before, step)
        elif step.kind == "setbit":
            values[key] = set_bit(before, *step.value)
        elif step.kind == "bitfield":
            values[key] = increment_field(before, *step.value)
        elif step.kind == "set":
            values[key] = step.value
        elif step.kind == "incr":
            values[key] = b"%d" % (int(before or 0) + 1)
        elif step.kind == "del":
            values.pop(key, None)


def fits(expected, actual):
    if isinstance(expected, tuple):
        return expected[0] <= (actual or 0) <= expected[1]
    return expected == actual


def held_value(key, value):
    if is_window(key):
        return ANY_COUNT
    return (value, value) if isinstance(value, int) else bytes(value)


class Writer:
    """Sends random writes until its connection ends. Used by one thread at a time."""

    KINDS = ("set", "setbit", "incr", "bitfield", "multi", "bf.add", "bf.madd",
             "bf.insert", "bf.del", "del")  # fmt: skip
    WEIGHTS = (20, 20, 20, 15, 10, 15, 5, 8, 4, 1)

    def __init__(self, name, seed, *, longest_pipeline=32):
        self.name = name
        self.rng = random.Random(f"{seed}/{name}")
        self.longest_pipeline = longest_pipeline
        # A model of the server's data at the last check(), and the writes sent since then.
        self.base = Model()
        self.steps = []
        # Acknowledged items of each filter, except the items that this writer deletes by BF.DEL.
        self.items = {}
        self.window_items = {}  # for each filter with a window: all sent items, in order
        self.faults = []
        self.sequence = 0
        self.acked_count = 0
        self.refused_count = 0

    def key(self, kind):
        return f"{self.name}:{kind}:{self.rng.randrange(3)}"

    def next_step(self):
        self.sequence += 1
        kind = self.rng.choices(self.KINDS, self.WEIGHTS)[0]
        if kind == "set":
            return Step(kind, self.key("s"), b"%d" % self.sequence * self.rng.randrange(1, 9))
        if kind == "setbit":
            position = self.rng.randrange(BITMAP_BITS)
            return Step(kind, self.key("b"), (position, self.rng.randrange(2)))
        if kind == "bitfield":
            return Step(kind, self.key("f"), (self.rng.randrange(64), self.rng.randrange(1, 999)))
        if kind == "multi":
            number = self.rng.randrange(3)
            keys = tuple(f"{self.name}:m{part}:{number}" for part in "abc")
            return Step(kind, keys, b"%d" % self.sequence)
        if kind == "bf.add":
            return Step(kind, self.key("bf"), f"{self.name}{self.sequence}")
        if kind == "bf.madd":
            items = [f"{self.name}{self.sequence}.{i}" for i in range(self.rng.randrange(1, 9))]
            return Step(kind, self.key("bf"), items)
        if kind == "bf.insert":
            items = [f"{self.name}{self.sequence}.{i}" for i in range(self.rng.randrange(1, 9))]
            key = f"{self.name}:bf:{self.rng.choice(FILTER_KINDS)}"
            if is_window(key):
                self.window_items.setdefault(key, []).extend(items)
            return Step(kind, key, items)
        if kind == "bf.del":
            key = f"{self.name}:bf:d{self.rng.randrange(len(DELETABLE))}"
            added = self.items.get(key, [])
            self.rng.shuffle(added)
            items = [added.pop() for _ in range(min(len(added), self.rng.randrange(1, 9)))]
            return Step(kind, key, items) if items else Step("incr", self.key("i"))
        if kind == "del":
            return Step(kind, self.key(self.rng.choice(["s", "b", "f", "bf"])))
        return Step("incr", self.key("i"))

    def run(self, port, stop=None):
        """Writes until the server closes the connection or `stop` is set."""
        try:
            with Connection(port) as connection:
                while stop is None or not stop.is_set():
                    self.send_pipeline(connection)
        except (OSError, EOFError):
            pass

    def send_pipeline(self, connection):
        steps = [self.next_step() for _ in range(self.rng.randrange(1, self.longest_pipeline + 1))]
        self.steps += steps
        connection.send(b"".join(step.encode() for step in steps))
        for step in steps:
            step.take_reply([connection.read_reply()[0] for _ in range(step.reply_count)])
            if step.acked_at is not None:
                self.note(step)

    def note(self, step):
        if step.was_refused:
            self.refused_count += 1
            return
        self.acked_count += 1
        if step.kind in ("bf.add", "bf.madd"):
            self.items.setdefault(step.key, []).extend(step.items())
        elif step.kind == "bf.insert":
            added = [item for item, answer in zip(step.value, step.reply) if answer == 1]
            self.items.setdefault(step.key, []).extend(added)
        elif step.kind == "bf.del" and 0 in step.reply:
            self.faults.append(f"{step.key}: lost before it was deleted: {step.value}")
        elif step.kind == "del":
            self.items.pop(step.key, None)

    def all_keys(self):
        keys = set(self.base.values)
        for step in self.steps:
            keys.update(step.keys)
        return sorted(keys)

    def read_actual(self, connection):
        """Returns the server's values of this writer's keys."""
        keys = self.all_keys()
        commands = [("BF.CARD" if ":bf:" in key else "GET", key) for key in keys]
        actual = {}
        for start in range(0, len(commands), 64):
            chunk = keys[start : start + 64]
            for key, (value, _) in zip(chunk, connection.pipeline(commands[start : start + 64])):
                # BF.CARD replies 0 for a missing key.
                if value is not None and not (":bf:" in key and value == 0):
                    actual[key] = value
        return actual

    def least_prefix(self, since=None):
        """Returns the number of sent writes up to the last acknowledged one. If `since` is given,
        only writes acknowledged before this time count.
        """
        needed = 0
        for index, step in enumerate(self.steps):
            if step.acked_at is None or step.was_refused:
                continue
            if since is None or step.acked_at < since:
                needed = index + 1
        return needed

    def check(self, connection, *, lost_since=None):
        """Returns the number of acknowledged writes that the server has lost. Only writes that were
        acknowledged since `lost_since` may be lost. The values found become the start values of the
        next check.
        """
        if self.faults:
            raise AssertionError("; ".join(self.faults))
        actual = self.read_actual(connection)
        prefix = self.find_prefix(actual, self.least_prefix(lost_since))
        missing = sum(
            step.acked_at is not None and not step.was_refused for step in self.steps[prefix:]
        )
        if missing == 0:
            self.check_items(connection, self.items_answered_since(lost_since))
        self.items.clear()
        self.window_items.clear()
        self.steps = []
        self.base = Model({key: held_value(key, v) for key, v in actual.items()})
        return missing

    def find_prefix(self, actual, least):
        """Returns the greatest n for which the first n writes give the values `actual`."""
        model = Model(self.base.values)
        keys = self.all_keys()
        wrong = {k for k in keys if not fits(model.values.get(k), actual.get(k))}
        found, fewest = None, (len(wrong), 0, set(wrong))
        if not wrong and least == 0:
            found = 0
        for index, step in enumerate(self.steps):
            model.apply(step)
            for key in step.keys:
                is_right = fits(model.values.get(key), actual.get(key))
                (wrong.discard if is_right else wrong.add)(key)
            if index + 1 >= least:
                if not wrong:
                    found = index + 1
                if fewest[1] < least or len(wrong) < fewest[0]:
                    fewest = (len(wrong), index + 1, set(wrong))
        if found is None:
            raise AssertionError(self.explain(actual, least, fewest))
        return found

    def explain(self, actual, least, fewest):
        _, prefix, wrong = fewest
        model = Model(self.base.values)
        for step in self.steps[:prefix]:
            model.apply(step)
        lines = [
            f"{self.name}: no prefix of the {len(self.steps)} steps sent, with at least the first "
            f"{least}, explains what the server holds; the nearest is {prefix}:"
        ]
        for key in sorted(wrong):
            lines.append(f"  {key}: {actual.get(key)!r} instead of {model.values.get(key)!r}")
            touching = [
                f"{i}:{s.kind} {s.value!r} -> {s.reply!r}"
                for i, s in enumerate(self.steps)
                if key in s.keys
            ]
            lines += ["    " + text for text in touching[-6:]]
        return "\n".join(lines)

    def items_answered_since(self, since):
        """Returns the items of filters with a window whose BF.INSERT was acknowledged at or after
        the time `since`. The server may have lost such items even if find_prefix() finds no lost
        write, because find_prefix() accepts any cardinality of these filters.
        """
        if since is None:
            return set()
        late = [s for s in self.steps if s.kind == "bf.insert" and (s.acked_at or 0) >= since]
        return {item for step in late if is_window(step.key) for item in step.items()}

    def check_items(self, connection, lost):
        """Checks that the server finds all acknowledged items except `lost`. Skips filters that an
        unanswered DEL may have removed.
        """
        deleted = {s.key for s in self.steps if s.kind == "del" and s.acked_at is None}
        for key, items in self.items.items():
            if key in deleted:
                continue
            if is_window(key):
                last = set(self.window_items[key][-WINDOW_ITEMS:])
                items = [item for item in items if item in last]
            items = [item for item in items if item not in lost]
            if not items:
                continue
            found = connection.call("BF.MEXISTS", key, *items)
            missing = [item for item, there in zip(items, found) if not there]
            if missing:
                raise AssertionError(f"{key}: acknowledged items are gone: {missing[:9]}")


class Observer:
    """Increments and reads a shared counter, which must never fall below a value that was read."""

    KEY = "shared:counter"

    def __init__(self):
        self.mutex = threading.Lock()  # guards `sent` and `seen`
        self.sent = 0
        self.seen = [(0, 0)]  # pairs (time of a reply, counter's value)

    def run(self, port, stop=None):
        try:
            with Connection(port) as connection:
                while stop is None or not stop.is_set():
                    self.increment_and_read(connection)
        except (OSError, EOFError):
            pass

    def increment_and_read(self, connection):
        with self.mutex:
            self.sent += 1
        connection.send(encode("INCR", self.KEY) + encode("GET", self.KEY))
        replies = [connection.read_reply()[0] for _ in range(2)]
        with self.mutex:
            # INCR fails while the append log cannot be written. The value that GET then returns
            # may not be on the disk, so the server may lose it, and the test does not record it.
            if isinstance(replies[0], ErrorReply):
                self.sent -= not is_uncertain(replies[0])
            else:
                self.seen.append((time.monotonic(), int(replies[1])))

    def check(self, connection, *, lost_since=None):
        value = int(connection.call("GET", self.KEY) or 0)
        least = max(v for at, v in self.seen if lost_since is None or at < lost_since)
        if not least <= value <= self.sent:
            raise AssertionError(f"{self.KEY} is {value}: seen {least}, sent {self.sent}")
        self.sent = value
        self.seen = [(0, value)]


def disturb(server, rng, load, writes):
    """Sends BGSAVE or BGREWRITEAOF at random, until `writes` more writes are acknowledged."""
    end = load.acked_count + writes
    with server.connect() as connection:
        while (left := end - load.acked_count) > 0:
            load.wait_for_writes(min(left, rng.randrange(1, 400)))
            connection.call(rng.choice(["BGREWRITEAOF", "BGREWRITEAOF", "BGSAVE"]))


class Load:
    """Runs writers and observers, each in a thread, against one server."""

    def __init__(self, seed, *, writers=4, observers=2, longest_pipeline=32):
        self.writers = [
            Writer(f"w{i}", seed, longest_pipeline=longest_pipeline if i else 1)
            for i in range(writers)
        ]
        self.observer = Observer()
        self.observer_count = observers
        self._stop = threading.Event()
        self._threads = []

    def start(self, port):
        self._stop.clear()
        runs = [writer.run for writer in self.writers]
        runs += [self.observer.run] * self.observer_count
        self._threads = [
            threading.Thread(target=run, args=(port, self._stop), daemon=True) for run in runs
        ]
        for thread in self._threads:
            thread.start()

    def is_running(self):
        return any(thread.is_alive() for thread in self._threads)

    def join(self):
        """Stops the threads and waits for them. The threads also end when the server ends."""
        self._stop.set()
        for thread in self._threads:
            thread.join(DEADLINE_S)
            if thread.is_alive():
                raise AssertionError("a writer hangs: the server neither answers nor closes")

    @property
    def acked_count(self):
        return sum(writer.acked_count for writer in self.writers)

    def wait_for_writes(self, more):
        """Waits for `more` more acknowledged writes, or until the writers end with their server."""
        end = self.acked_count + more
        wait_until(
            lambda: self.acked_count >= end or not self.is_running(),
            lambda: f"{end - self.acked_count} of {more} writes",
            poll_every_s=0.001,
        )

    @property
    def refused_count(self):
        return sum(writer.refused_count for writer in self.writers)

    def check(self, connection, *, lost_since=None):
        """Returns the number of acknowledged writes that the server has lost. Raises AssertionError
        if a lost write was acknowledged before `lost_since`.
        """
        missing = sum(w.check(connection, lost_since=lost_since) for w in self.writers)
        self.observer.check(connection, lost_since=lost_since)
        known = {self.observer.KEY}.union(*(writer.base.values for writer in self.writers))
        held = {key.decode() for key in connection.call("KEYS", "*")}
        # The key of a deletable filter exists even after BF.DEL has deleted all items. But the
        # `base` of a writer omits filters whose BF.CARD is 0, so their keys are added here.
        known.update(f"{w.name}:bf:d{i}" for w in self.writers for i in range(len(DELETABLE)))
        if held - known:
            raise AssertionError(f"keys that no writer has written: {sorted(held - known)[:9]}")
        return missing
