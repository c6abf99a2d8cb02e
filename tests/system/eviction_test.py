#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""maxmemory: which keys go, beside redis-server, and what is left of them everywhere."""

import os
import random
import threading
import time
import unittest

from harness import ServerTest, seed_from_environment, wait_until
from resp import ErrorReply

KEYS = 3000


def memory(client):
    for line in client.call("INFO", "memory").decode().splitlines():
        if line.startswith("used_memory:"):
            return int(line.split(":")[1])
    raise AssertionError("INFO has no used_memory")


def figure(client, name):
    for line in client.call("INFO", "stats").decode().splitlines():
        if line.startswith(name + ":"):
            return int(line.split(":")[1])
    raise AssertionError(f"INFO has no {name}")


class EvictionOrderTest(ServerTest):
    """Keys with a known order, of which about a quarter has to go."""

    def setUp(self):
        random.seed(seed_from_environment())
        self.servers = {"ours": self.start_server(), "redis": self.start_redis()}
        self.clients = {name: one.connect() for name, one in self.servers.items()}
        self.servers["redis"].expect_log("the new maxmemory value set via CONFIG SET")
        for client in self.clients.values():
            self.addCleanup(client.close)

    def gone(self, client, policy, restore_options):
        """The numbers of the keys that are gone; restore_options(i) makes key 0 the first to go."""
        client.call("FLUSHALL")
        wait_until(
            lambda: b"lazyfree_pending_objects:0\r" in client.call("INFO", "memory"),
            what="the old keys are freed",
        )
        client.call("CONFIG", "SET", "maxmemory", 0, "maxmemory-policy", policy)
        client.call("SET", "source", os.urandom(400))
        payload = client.call("DUMP", "source")
        client.call("DEL", "source")
        before = memory(client)
        numbers = list(range(KEYS))
        random.shuffle(numbers)
        for i in numbers:
            ttl_ms, *options = restore_options(i)
            self.assertEqual(client.call("RESTORE", f"k{i}", ttl_ms, payload, *options), b"OK")
        data = memory(client) - before
        client.call("CONFIG", "SET", "maxmemory", before + data * 3 // 4)
        # INFO's own reply is memory, too.
        wait_until(
            lambda: memory(client) <= before + data * 3 // 4 + 20_000,
            what="the limit is kept",
            timeout_s=20,
        )
        return [i for i in range(KEYS) if client.call("EXISTS", f"k{i}") == 0]

    def compare(self, policy, restore_options, expected_rank):
        ranks = {}
        for name, client in self.clients.items():
            gone = self.gone(client, policy, restore_options)
            ranks[name] = sum(gone) / len(gone)
            print(f"{policy} {name}: {len(gone)} keys gone, mean rank {ranks[name]:.0f}")
            self.assertAlmostEqual(len(gone), KEYS / 4, delta=KEYS / 12)
            self.assertAlmostEqual(ranks[name], expected_rank, delta=KEYS * 0.06)
        # The mean of 750 out of 3000 strays by some 30 at random.
        self.assertAlmostEqual(ranks["ours"], ranks["redis"], delta=KEYS * 0.05)

    def test_least_recently_used(self):
        # In the true order the mean rank would be 375.
        for policy in ("allkeys-lru", "volatile-lru"):
            self.compare(policy, lambda i: (10**9, "IDLETIME", (KEYS - i) * 100), 540)

    def test_least_frequently_used(self):
        for policy in ("allkeys-lfu", "volatile-lfu"):
            self.compare(policy, lambda i: (10**9, "FREQ", i * 255 // KEYS), 540)

    def test_soonest_to_expire(self):
        self.compare("volatile-ttl", lambda i: (10**8 + i * 10**5,), 540)

    def test_at_random(self):
        for policy in ("allkeys-random", "volatile-random"):
            self.compare(policy, lambda i: (10**9, "IDLETIME", (KEYS - i) * 100), KEYS / 2)


class EvictionTest(ServerTest):
    def test_frequencies_are_counted_as_redis_counts_them(self):
        replies = []
        for server in (self.start_server(), self.start_redis()):
            with server.connect() as client:
                # With a limit Redis shares no integers between keys.
                client.call("CONFIG", "SET", "maxmemory", 1 << 30)
                client.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
                # Without a factor nothing is left to chance.
                client.call("CONFIG", "SET", "lfu-log-factor", 0, "lfu-decay-time", 0)
                replies.append([])
                for command in (
                    ["SET", "a", "1"],
                    ["GET", "a"],
                    ["SET", "a", "2"],
                    ["APPEND", "a", "3"],
                    ["STRLEN", "a"],
                    ["INCR", "a"],
                    ["GETRANGE", "a", "0", "1"],
                    ["SETRANGE", "a", "0", "9"],
                    ["SETBIT", "a", "1", "1"],
                    ["GETBIT", "a", "1"],
                    ["BITCOUNT", "a"],
                    ["MGET", "a", "a"],
                    ["MSET", "a", "1"],
                    ["TOUCH", "a"],
                    ["EXISTS", "a"],
                    ["TYPE", "a"],
                    ["TTL", "a"],
                    ["EXPIRE", "a", "1000"],
                    ["GETEX", "a"],
                    ["DUMP", "a"],
                    ["COPY", "a", "b"],
                    ["RENAME", "a", "c"],
                    ["RENAME", "c", "a"],
                    ["BITOP", "NOT", "a", "a"],
                    ["OBJECT", "ENCODING", "a"],
                ):
                    client.call(*command)
                    counts = [client.call("OBJECT", "FREQ", key) for key in ("a", "b", "c")]
                    replies[-1].append((command, counts))
                client.call("RESTORE", "r", 0, client.call("DUMP", "b"), "FREQ", 200)
                replies[-1].append(client.call("OBJECT", "FREQ", "r"))
                replies[-1].append(client.call("OBJECT", "IDLETIME", "r"))
                client.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
                client.call("RESTORE", "s", 0, client.call("DUMP", "b"), "IDLETIME", 5000)
                replies[-1].append(client.call("OBJECT", "IDLETIME", "s"))
                replies[-1].append(client.call("OBJECT", "FREQ", "s"))
        for ours, theirs in zip(*replies):
            self.assertEqual(ours, theirs)

    def test_uses_come_with_the_snapshot_here_and_there(self):
        for policy, option, value in (
            ("allkeys-lru", "IDLETIME", 5000),
            ("volatile-lfu", "FREQ", 200),
        ):
            options = ("--maxmemory-policy", policy, "--repl-diskless-sync-delay", 0)
            ours, redis = self.start_server(*options), self.start_redis(*options)
            redis.expect_log("Setting secondary replication ID")
            for server in (ours, redis):
                server.expect_log("Connection with replica .* lost")
                server.expect_log("Connection with master lost")
            for leader, replica in ((ours, redis), (redis, ours)):
                with leader.connect() as client, replica.connect() as other:
                    client.call("FLUSHALL")
                    client.call("SET", "source", "value")
                    payload = client.call("DUMP", "source")
                    client.call("RESTORE", "k", 10**9, payload, option, value)
                    other.call("REPLICAOF", "127.0.0.1", leader.port)
                    wait_until(lambda: other.call("EXISTS", "k") == 1, 20, what="the snapshot")
                    got = other.call("OBJECT", option, "k")
                    self.assertAlmostEqual(got, value, delta=20)
                    other.call("REPLICAOF", "NO", "ONE")

    def test_writers_on_many_connections_keep_the_limit(self):
        server = self.start_server("--io-threads", 2, "--maxmemory-policy", "allkeys-lru")
        with server.connect() as client:
            limit = memory(client) + (4 << 20)
            client.call("CONFIG", "SET", "maxmemory", limit)
            errors = []

            def write(number):
                with server.connect() as one:
                    for i in range(4000):
                        reply = one.call("SET", f"{number}:{i}", b"v" * 1000)
                        if isinstance(reply, ErrorReply):
                            errors.append(reply)

            threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(errors, [])
            self.assertGreater(figure(client, "evicted_keys"), 8000)
            self.assertLess(memory(client), limit + (1 << 20))
            # Keys may still be leaving between one command and the next.
            wait_until(
                lambda: client.call("DBSIZE") == 16_000 - figure(client, "evicted_keys"),
                what=lambda: f"{client.call('DBSIZE')} keys are left, "
                f"{figure(client, 'evicted_keys')} of 16000 are counted as gone: the same sum",
            )

    def test_the_replica_and_the_log_lose_the_same_keys(self):
        leader = self.start_server("--appendonly", "yes", "--maxmemory-policy", "allkeys-random")
        replica = self.start_server("--replicaof", f"127.0.0.1 {leader.port}")
        with leader.connect() as client, replica.connect() as other:
            wait_until(lambda: b"master_link_status:up" in other.call("INFO", "replication"))
            limit = memory(client) + (4 << 20)
            client.call("CONFIG", "SET", "maxmemory", limit)
            for i in range(8000):
                self.assertEqual(client.call("SET", f"k{i}", b"v" * 1000), b"OK")
            client.call("CONFIG", "SET", "maxmemory", 0)
            kept = {f"k{i}" for i in range(8000) if client.call("EXISTS", f"k{i}")}
            self.assertLess(len(kept), 4000)
            self.assertEqual(client.call("WAIT", 1, 5000), 1)
            self.assertEqual(
                {f"k{i}" for i in range(8000) if other.call("EXISTS", f"k{i}")}, kept
            )
            digest = client.call("DBSIZE")
            client.call("DEBUG", "LOADAOF")
            self.assertEqual(client.call("DBSIZE"), digest)

    def test_a_filter_gets_room_and_a_lowered_limit_is_reached(self):
        server = self.start_server("--maxmemory-policy", "allkeys-lru")
        with server.connect() as client:
            before = memory(client)
            for i in range(10_000):
                client.call("SET", f"k{i}", b"v" * 1000)
            client.call("CONFIG", "SET", "maxmemory", memory(client) + 100_000)
            limit = int(client.call("CONFIG", "GET", "maxmemory")[1])
            time.sleep(2.1)  # so that the filter is younger than the strings
            self.assertEqual(client.call("BF.RESERVE", "f", "0.001", "2000000"), b"OK")
            wait_until(lambda: memory(client) <= limit + 20_000, what="the limit is kept")
            self.assertEqual(client.call("EXISTS", "f"), 1)
            self.assertIsInstance(
                client.call("BF.RESERVE", "g", "0.001", "200000000"), ErrorReply, "it never fits"
            )
            limit = before + (5 << 20)
            client.call("CONFIG", "SET", "maxmemory", limit)
            wait_until(lambda: memory(client) <= limit + 20_000, what="the new limit is kept")
            self.assertGreater(client.call("DBSIZE"), 100)


if __name__ == "__main__":
    unittest.main()
