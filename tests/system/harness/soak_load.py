# SPDX-License-Identifier: MIT
"""The load of scripts/soak.sh: threads, each of which repeatedly sends one kind of commands.

Each thread uses a bounded number of keys of bounded size. So a server needs no more memory after
hours than after the first seconds.
"""

import http.client
import itertools
import random
import threading
import time

from harness.info import info
from harness.resp import ErrorReply, encode
from harness.waiting import pace, wait_until

PIPELINE = 350


class Gate:
    """Pauses all loads while the Gate is closed. A load pauses only between two of its rounds. At
    that point the load always has the same amount of data in the server, except for expired keys.
    """

    def __init__(self):
        self.open = threading.Event()
        self.open.set()
        self.waiting = set()

    def let_pass(self, load):
        while not self.open.is_set() and not load.stopping.is_set():
            self.waiting.add(load)
            self.open.wait(0.1)
        self.waiting.discard(load)

    def close(self, loads, timeout_s=180):
        """Prevents further rounds, and waits until every load has finished its present round."""
        self.open.clear()
        wait_until(
            lambda: all(load in self.waiting or not load.is_alive() for load in loads),
            lambda: f"a round's end of {[load.name for load in loads if load not in self.waiting]}",
            timeout_s=timeout_s,
        )


class Load(threading.Thread):
    """A thread that calls round() until it is stopped. It counts replies, and keeps the first
    error.
    """

    def __init__(self, server, gate):
        super().__init__(daemon=True, name=type(self).__name__)
        self.server = server
        self.gate = gate
        self.stopping = threading.Event()
        self.replies = 0
        self.fault = None
        self.random = random.Random(self.name)
        self.serial = itertools.count()

    def run(self):
        try:
            self.client = self.server.connect()
            self.begin()
            while not self.stopping.is_set():
                self.gate.let_pass(self)
                self.round()
            self.client.close()
        except Exception as fault:  # pylint: disable=broad-except
            self.fault = f"{self.name}: {fault!r}"

    def begin(self):
        """Called before the first round."""

    def round(self):
        raise NotImplementedError

    def send(self, commands):
        """Sends a pipeline; returns its parsed replies and raises on an error."""
        self.client.send(b"".join(encode(*command) for command in commands))
        replies = [self.client.read_reply()[0] for _ in commands]
        self.replies += len(replies)
        for command, reply in zip(commands, replies):
            if isinstance(reply, ErrorReply):
                raise AssertionError(f"{command} was answered {reply}")
        return replies

    def items(self, count, top=1 << 40):
        return [self.random.randrange(top) for _ in range(count)]


class BloomBatches(Load):
    """Recreates one of eight filters in each round, and adds ITEMS items to it. Seven filters have
    the capacity ITEMS. The eighth has 400 times this capacity, so that its array is in memory
    that the child processes of saves share.
    """

    ITEMS = 50_000

    def round(self):
        number = next(self.serial) % 8
        key = f"batches:{number}"
        capacity = self.ITEMS if number else self.ITEMS * 400
        self.send([("DEL", key), ("BF.RESERVE", key, 0.01, capacity)])
        for _ in range(self.ITEMS // 2500):
            if self.stopping.is_set():
                return
            items = self.items(2500)
            batches = [items[i : i + 250] for i in range(0, 2500, 250)]
            self.send([("BF.MADD", key, *batch) for batch in batches])
            (known,) = self.send([("BF.MEXISTS", key, *batches[0])])
            assert all(known), "an item that was added is missing"


class GrowingFilter(Load):
    """Adds about 64,000 items to a filter with a capacity of 1,000, so that the filter grows."""

    def round(self):
        self.send([("UNLINK", "grows"), ("BF.RESERVE", "grows", 0.001, 1000)])
        for _ in range(64_000 // PIPELINE):
            if self.stopping.is_set():
                return
            self.send([("BF.ADD", "grows", item) for item in self.items(PIPELINE)])


class Bits(Load):
    """Acts like a client that keeps its own Bloom filter in bitmaps: sends SETBIT and GETBIT."""

    def begin(self):
        self.send([("SETBIT", f"bits:{i}", (1 << 22) - 1, 1) for i in range(16)])

    def round(self):
        key = f"bits:{self.random.randrange(16)}"
        offsets = self.items(PIPELINE, 1 << 22)
        self.send([("SETBIT", key, offset, 1) for offset in offsets])
        assert all(self.send([("GETBIT", key, offset) for offset in offsets[:50]]))
        self.send([("BITCOUNT", key), ("BITOP", "XOR", "bits:0", "bits:0", key)])


class Counters(Load):
    """Increments counters that expire within two seconds."""

    def round(self):
        keys = [f"counter:{self.random.randrange(5000)}" for _ in range(PIPELINE // 2)]
        self.send([
            command for key in keys
            for command in (("INCRBY", key, 7), ("PEXPIRE", key, self.random.randrange(1, 2000)))
        ])  # fmt: skip


class ExpiringKeys(Load):
    """Writes strings and filters that expire within a second. Writes each key once."""

    def round(self):
        number = next(self.serial)
        self.send([("SET", f"once:{number}:{i}", "x" * 50, "PX", 500) for i in range(100)])
        self.send([
            ("BF.INSERT", f"user:{number}:{i}", "CAPACITY", 100, "EX", 1, "ITEMS", 1, 2, 3)
            for i in range(20)
        ])  # fmt: skip
        self.stopping.wait(0.05)


class Deletable(Load):
    """Adds items and deletes them again, in both kinds of deletable filters (KINDS)."""

    KINDS = {"fingerprints": ["DELETABLE"], "regions": ["DELETABLE", "REGIONS", 4]}

    def begin(self):
        for kind, words in self.KINDS.items():
            self.send([("BF.RESERVE", f"del:{kind}", 0.01, 20_000, *words)])

    def round(self):
        for kind in self.KINDS:
            key = f"del:{kind}"
            items = self.items(1000)
            (added,) = self.send([("BF.MADD", key, *items)])
            # If an add answered 0, no item was stored, so the item must not be deleted.
            self.send([("BF.DEL", key, *[item for item, new in zip(items, added) if new])])


class Windows(Load):
    """Filters whose generations rotate about once a second, by time and by number of items."""

    def begin(self):
        self.send([
            ("BF.RESERVE", "window:time", 0.01, 50_000, "WINDOW", 4, "REFRESH"),
            ("BF.RESERVE", "window:items", 0.01, 20_000, "WINDOW", 20_000, "ITEMS"),
        ])  # fmt: skip

    def round(self):
        items = self.items(200)
        for key in ("window:time", "window:items"):
            began = time.monotonic()
            (added,) = self.send([("BF.MADD", key, *items)])
            (known,) = self.send([("BF.MEXISTS", key, *items)])
            # On a busy machine the window of four seconds may have passed.
            if key == "window:time" and time.monotonic() - began > 3:
                continue
            # A filter without REFRESH does not store an item that it already finds, even by a false
            # positive. The generation that causes the false positive may soon expire. So only items
            # that the filter reported as new are checked.
            promised = known if key == "window:time" else itertools.compress(known, added)
            assert all(promised), "an item is forgotten before its window has passed"
        self.stopping.wait(0.02)


class Clients(Load):
    """Opens a connection, names it, enables tracking, subscribes to channels, begins a transaction,
    and closes the connection.
    """

    def round(self):
        name = f"soak:{next(self.serial)}"
        with self.server.connect() as client:
            for command in (
                ("HELLO", 3, "SETNAME", name), ("CLIENT", "TRACKING", "ON"), ("GET", "counter:1"),
                ("SUBSCRIBE", name), ("PSUBSCRIBE", name + "*"), ("WATCH", "bits:0"), ("MULTI",),
                ("SET", "by-transaction", name), ("PUBLISH", name, "x"), ("EXEC",),
                ("NO-SUCH-COMMAND",), ("CLIENT", "LIST"), ("KEYS", "window:*"), ("BF.SCAN", 0),
            ):  # fmt: skip
                client.call(*command)
                self.replies += 1
        self.stopping.wait(0.02)


class BackgroundTasks(Load):
    """A load that disturbs the servers. Each round runs BGSAVE, rewrites the append log, cuts the
    replica's link or forces a full sync. After that it waits one second.
    """

    def __init__(self, server, gate, replica):
        super().__init__(server, gate)
        self.replica = replica
        self.done = {}

    def begin(self):
        self.replica_client = self.replica.connect()

    def round(self):
        deeds = (self.save, self.rewrite, self.cut_link, self.save, self.rewrite, self.full_sync)
        deed = deeds[next(self.serial) % len(deeds)]
        deed()
        self.done[deed.__name__] = self.done.get(deed.__name__, 0) + 1
        self.stopping.wait(1)

    def children_are_gone(self):
        """Waits until no child process of either server saves, so that the next save can begin."""
        for client in (self.client, self.replica_client):
            while not self.stopping.is_set():
                status = info(client, "persistence")
                if status["rdb_bgsave_in_progress"] == status["aof_rewrite_in_progress"] == "0":
                    break
                pace(0.05)

    def save(self):
        self.children_are_gone()
        self.client.call("BGSAVE")
        self.replica_client.call("BGSAVE")

    def rewrite(self):
        self.children_are_gone()
        self.client.call("BGREWRITEAOF")
        self.replica_client.call("BGREWRITEAOF")

    def cut_link(self):
        self.client.call("CLIENT", "KILL", "TYPE", "replica")

    def full_sync(self):
        self.replica_client.call("REPLICAOF", "NO", "ONE")
        self.replica_client.call("REPLICAOF", "127.0.0.1", self.server.port)


class Watcher(Load):
    """Sends the HTTP requests of an open dashboard and of Prometheus, once a second."""

    PATHS = (
        "/", "/dashboard.css", "/dashboard.js", "/healthz", "/metrics", "/api/overview",
        "/api/filters?cursor=0&match=*&db=0", "/api/filter?key=window%3Atime&db=0",
        "/api/plan?error_rate=0.01&capacity=1000000&kind=windowed&window=60",
    )  # fmt: skip

    def round(self):
        started = time.monotonic()
        page = http.client.HTTPConnection("127.0.0.1", self.server.http_port, timeout=20)
        for path in self.PATHS:
            page.request("GET", path)
            answer = page.getresponse()
            text = answer.read()
            # Errors of /api/filter and /api/filters are accepted: the filter may not exist yet, or
            # a replica may still be loading.
            if answer.status != 200 and not path.startswith("/api/filter"):
                raise AssertionError(f"{path}: {answer.status} {text[:200]!r}")
            self.replies += 1
        page.close()
        self.stopping.wait(max(0, started + 1 - time.monotonic()))


KINDS = (BloomBatches, GrowingFilter, Bits, Counters, ExpiringKeys, Deletable, Windows, Clients)
