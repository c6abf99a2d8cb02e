#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests 16 I/O threads that run all kinds of commands which involve several threads. The load uses
one hot filter, many keys, transactions, pub/sub, monitors and killed clients. Meanwhile
options change, snapshots and append log rewrites run, keys expire, and databases are swapped and
flushed.

The test compares exact counts: no acknowledged write may be lost or applied twice. This holds at
the end and after a restart from the append log. ThreadSanitizer runs this test too.

BLOOMERY_TIER=long makes the test twenty times as long. BLOOMERY_SEED replays its random choices,
but not the order in which the threads run.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import queue
import random
import shutil
import tempfile
import threading
import unittest

from harness import ServerTest, seed_from_environment, wait_until, wait_until_loaded
from harness.resp import ErrorReply

SCALE = 20 if os.environ.get("BLOOMERY_TIER") == "long" else 1
IO_THREADS = 16
STEPS = 60 * SCALE  # number of steps of each worker
SAVES = 2 * SCALE
LIVES = 5 * SCALE  # number of times that each victim's connection is killed
ADDERS = COUNTERS = WRITERS = TRANSFERS = SWAP_COUNTERS = 6
PUBLISHERS = SUBSCRIBERS = MONITORS = 3
VICTIMS = FLUSHERS = 3
ACCOUNTS = ("account:0", "account:1")
MAIN, LEFT, RIGHT, FLUSHED = 0, 1, 2, 3  # database numbers, as in SELECT
OPTIONS = {
    "appendfsync": ("always", "everysec", "no"),
    "slowlog-log-slower-than": ("0", "10000"),
    "notify-keyspace-events": ("AKE", ""),
    "maxmemory-policy": ("noeviction", "allkeys-lru"),
    "timeout": ("0", "1000"),
}


class ManyThreadsTest(ServerTest):
    def setUp(self):
        self.seed = seed_from_environment()
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-threads-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.failed = threading.Event()  # Set by the first failure, which ends all workers.
        self.failures = []  # Later failures may be consequences of the first one.
        self.victims = queue.Queue()  # Ids of clients that another worker kills.

    def start(self):
        options = ("--io-threads", IO_THREADS, "--appendonly", "yes")
        self.server = self.start_server(*options, directory=self.directory)
        self.connection = self.connect()
        wait_until_loaded(self.connection)

    def connect(self, database=MAIN):
        connection = self.server.connect()
        self.addCleanup(connection.close)
        if database != MAIN:
            self.assertEqual(connection.call("SELECT", database), b"OK")
        return connection

    # Each method below is a worker. Its arguments are the worker's number and a random generator.
    # The test sums or checks the results of the workers.

    def add_items(self, number, _):
        """Adds items that only this worker adds, and items that other workers add too. Returns how
        many items were new."""
        connection, ones = self.connect(), 0
        for step in range(STEPS):
            ones += connection.call("BF.ADD", "hot", f"shared:{step}")
            ones += sum(connection.call("BF.MADD", "hot", *own_items(number, step)))
            self.assertEqual(connection.call("BF.EXISTS", "hot", f"shared:{step}"), 1)
        return ones

    def count(self, _, choices):
        """Increments random counters. Returns the number of increments."""
        connection = self.connect()
        for _ in range(STEPS):
            keys = [f"count:{choices.randrange(4)}" for _ in range(10)]
            replies = connection.pipeline([("INCR", key) for key in keys])
            self.assertNotIn(ErrorReply, {type(reply) for reply, _ in replies})
        return STEPS * 10

    def write_keys(self, number, choices):
        """Writes keys. Half of them expire, some of them while other keys are being written."""
        connection = self.connect()
        for step in range(STEPS):
            connection.pipeline([
                ("SET", f"key:{number}:{step}", step),
                ("SET", f"expiring:{number}:{step}", step, "PX", choices.randrange(1, 200)),
                ("SETBIT", f"bits:{number}", step, 1),
            ])  # fmt: skip
            self.assertEqual(connection.call("GET", f"key:{number}:{step}"), b"%d" % step)

    def transfer(self, _, choices):
        """Moves amounts between two accounts. Each transaction uses WATCH, because it writes values
        computed from reads."""
        connection, done = self.connect(), 0
        while done < STEPS // 4 and not self.failed.is_set():
            source, target = choices.sample(ACCOUNTS, 2)
            amount = choices.randrange(100)
            connection.call("WATCH", *ACCOUNTS)
            before = [int(connection.call("GET", key)) for key in (source, target)]
            replies = connection.pipeline([
                ("MULTI",), ("SET", source, before[0] - amount),
                ("SET", target, before[1] + amount), ("INCR", "transfers"), ("EXEC",),
            ])  # fmt: skip
            done += replies[-1][0] is not None
        return done

    def publish(self, number, _):
        connection = self.connect()
        for step in range(STEPS):
            received = connection.call("PUBLISH", "channel", f"{number}:{step}")
            self.assertEqual(received, SUBSCRIBERS)

    def subscribe(self, connection):
        """Checks that each message arrives once, and that the messages of each publisher arrive in
        order.
        """
        found = [[] for _ in range(PUBLISHERS)]
        for _ in range(PUBLISHERS * STEPS):
            kind, channel, message = connection.read_reply()[0]
            self.assertEqual((kind, channel), (b"message", b"channel"))
            number, step = map(int, message.split(b":"))
            found[number].append(step)
        self.assertEqual(found, [list(range(STEPS))] * PUBLISHERS)

    def monitor(self, connection):
        """Returns the number of published messages that this monitor has seen."""
        seen = 0
        while b'"the end"' not in (line := connection.read_reply()[0]):
            seen += b'"PUBLISH"' in line
        return seen

    def be_killed(self, _, __):
        """Opens LIVES connections, one after the other. Increments a counter on each of them until
        another worker kills the connection. Returns how many increments were acknowledged.
        """
        acknowledged = 0
        for _ in range(LIVES):
            with self.server.connect() as connection:
                self.victims.put(connection.call("CLIENT", "ID"))
                with contextlib.suppress(EOFError, ConnectionError):
                    while not self.failed.is_set():
                        connection.call("INCR", "by victims")
                        acknowledged += 1
        return acknowledged

    def kill(self, _, __):
        connection = self.connect()
        for _ in range(VICTIMS * LIVES):
            victim = self.victims.get(timeout=60)
            is_listed = b"id=%d " % victim in connection.call("CLIENT", "LIST")
            self.assertTrue(is_listed, f"client {victim} is not in CLIENT LIST")
            self.assertEqual(connection.call("CLIENT", "KILL", "ID", victim), 1)

    def change_options(self, _, choices):
        connection = self.connect()
        for _ in range(STEPS):
            name, values = choices.choice(list(OPTIONS.items()))
            value = choices.choice(values)
            self.assertEqual(connection.call("CONFIG", "SET", name, value), b"OK")
            self.assertEqual(connection.call("CONFIG", "GET", name)[1], value.encode())
            self.assertIn(b"io_threads_active:1", connection.call("INFO", "everything"))

    def save(self, _, __):
        connection = self.connect()
        for _ in range(SAVES):
            self.assertNotIsInstance(connection.call("BGREWRITEAOF"), ErrorReply)
            self.wait_for_child(connection, b"aof_rewrite_in_progress:0")
            self.assertEqual(connection.call("SAVE"), b"OK")
            self.assertNotIsInstance(connection.call("BGSAVE"), ErrorReply)
            self.wait_for_child(connection, b"rdb_bgsave_in_progress:0")
        fields = connection.call("INFO", "persistence")
        self.assertIn(b"aof_last_bgrewrite_status:ok", fields)
        self.assertIn(b"rdb_last_bgsave_status:ok", fields)

    def wait_for_child(self, connection, field):
        wait_until(lambda: field in connection.call("INFO", "persistence"), field.decode())

    def count_in_swapped(self, number, _):
        connection = self.connect((LEFT, RIGHT)[number % 2])
        for _ in range(STEPS):
            self.assertGreater(connection.call("INCR", "swapped"), 0)
        return STEPS

    def swap(self, _, __):
        connection = self.connect()
        for _ in range(STEPS):
            self.assertEqual(connection.call("SWAPDB", LEFT, RIGHT), b"OK")

    def flush(self, number, _):
        """Fills and flushes a database that other workers also fill and flush."""
        connection = self.connect(FLUSHED)
        for step in range(STEPS):
            connection.call("SET", f"key:{number}:{step}", "")
            connection.call("BF.ADD", "hot", step)
            if step % 10 == 9:
                self.assertEqual(connection.call("FLUSHDB"), b"OK")

    # The methods below run all workers and check their results.

    def run_worker(self, worker, *arguments):
        try:
            return worker(*arguments)
        except BaseException as failure:
            self.failures.append(failure)
            self.failed.set()
            raise

    def run_workers(self):
        """Runs all workers. Returns a dict that maps each worker's name to a list of its threads'
        results, in the order of the thread numbers.
        """
        counts = {
            self.add_items: ADDERS, self.count: COUNTERS, self.write_keys: WRITERS,
            self.transfer: TRANSFERS, self.publish: PUBLISHERS, self.be_killed: VICTIMS,
            self.kill: 1, self.change_options: 1, self.save: 1, self.swap: 1,
            self.count_in_swapped: SWAP_COUNTERS, self.flush: FLUSHERS,
        }  # fmt: skip
        subscribers = [self.connect() for _ in range(SUBSCRIBERS)]
        monitors = [self.connect() for _ in range(MONITORS)]
        for connection in subscribers:
            self.assertEqual(connection.call("SUBSCRIBE", "channel")[0], b"subscribe")
        for connection in monitors:
            self.assertEqual(connection.call("MONITOR"), b"OK")
        thread_count = sum(counts.values()) + SUBSCRIBERS + MONITORS
        with concurrent.futures.ThreadPoolExecutor(thread_count) as pool:
            seen = [pool.submit(self.run_worker, self.monitor, c) for c in monitors]
            heard = [pool.submit(self.run_worker, self.subscribe, c) for c in subscribers]
            futures = {
                worker.__name__: [
                    pool.submit(self.run_worker, worker, number,
                                random.Random(f"{self.seed} {worker.__name__} {number}"))
                    for number in range(count)
                ]
                for worker, count in counts.items()
            }  # fmt: skip
            every = [future for group in futures.values() for future in group]
            concurrent.futures.wait([*every, *heard])
            self.connection.call("ECHO", "the end")
            concurrent.futures.wait(seen)
            if self.failures:
                raise self.failures[0]
            results = {name: [f.result() for f in group] for name, group in futures.items()}
            self.assertEqual([f.result() for f in seen], [PUBLISHERS * STEPS] * MONITORS)
        return results

    def expect_all(self, results):
        call = self.connection.call
        self.assertEqual(call("BF.CARD", "hot"), sum(results["add_items"]))
        for number in range(ADDERS):
            for step in range(STEPS):
                items = [f"shared:{step}", *own_items(number, step)]
                self.assertNotIn(0, call("BF.MEXISTS", "hot", *items))
        counts = [int(call("GET", f"count:{i}")) for i in range(4)]
        self.assertEqual(sum(counts), sum(results["count"]))
        for number in range(WRITERS):
            keys = [f"key:{number}:{step}" for step in range(STEPS)]
            self.assertEqual(call("MGET", *keys), [b"%d" % step for step in range(STEPS)])
            self.assertEqual(call("BITCOUNT", f"bits:{number}"), STEPS)
        self.assertEqual(sum(int(call("GET", key)) for key in ACCOUNTS), 0)
        self.assertEqual(int(call("GET", "transfers")), sum(results["transfer"]))
        by_victims = int(call("GET", "by victims"))
        acknowledged = sum(results["be_killed"])
        # When a connection is killed, its last INCR may have been executed without a reply.
        self.assertIn(by_victims - acknowledged, range(VICTIMS * LIVES + 1))
        self.expect_databases(sum(results["count_in_swapped"]))

    def expect_databases(self, swapped):
        # After the workers have ended, exactly these keys exist: the filter, four counters, the
        # writers' keys, the accounts, and two more counters.
        expected = 1 + 4 + WRITERS * (STEPS + 1) + len(ACCOUNTS) + 2
        wait_until(
            lambda: self.connection.call("DBSIZE") == expected,
            lambda: f"DBSIZE of {expected}, now {self.connection.call('DBSIZE')}",
        )
        connections = [self.connect(database) for database in (LEFT, RIGHT)]
        parts = [int(connection.call("GET", "swapped") or 0) for connection in connections]
        self.assertEqual(sum(parts), swapped)

    def test_nothing_is_lost_when_everything_runs_at_once(self):
        self.start()
        self.assertEqual(self.connection.call("BF.RESERVE", "hot", "0.001", 100), b"OK")
        self.connection.call("MSET", *[word for key in ACCOUNTS for word in (key, 0)])
        results = self.run_workers()
        self.expect_all(results)
        self.connect(FLUSHED).call("FLUSHDB")
        by_victims = self.connection.call("GET", "by victims")

        self.assertEqual(self.server.stop(), [])
        self.start()
        self.expect_all(results)
        self.assertEqual(self.connection.call("GET", "by victims"), by_victims)
        self.assertEqual(self.connect(FLUSHED).call("DBSIZE"), 0)


def own_items(number, step):
    return [f"{number}:{step}:{i}" for i in range(5)]


if __name__ == "__main__":
    unittest.main()
