#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests maxmemory with several writing threads, and with redis-server as leader and as replica."""

import concurrent.futures
import os
import re
import signal
import threading
import unittest

from harness import ServerTest, wait_until
from harness.info import info
from harness.replication_peer import RawReplica
from harness.resp import ErrorReply, Push, encode


def memory(client):
    for line in client.call("INFO", "memory").decode().splitlines():
        if line.startswith("used_memory:"):
            return int(line.split(":")[1])
    raise AssertionError("INFO has no used_memory")


def figure(client, name, section="stats"):
    for line in client.call("INFO", section).decode().splitlines():
        if line.startswith(name + ":"):
            return int(line.split(":")[1])
    raise AssertionError(f"INFO has no {name}")


class EvictionTest(ServerTest):

    def test_snapshots_keep_the_use_of_keys(self):
        for policy, option, value in (
            ("allkeys-lru", "IDLETIME", 5000),
            ("volatile-lfu", "FREQ", 200),
        ):
            options = ("--maxmemory-policy", policy, "--repl-diskless-sync-delay", 0)
            ours, redis = self.start_server(*options), self.start_redis(*options)
            redis.expect_log("Setting secondary replication ID|Diskless rdb transfer")
            for server in (ours, redis):
                server.expect_log("Connection with replica .* lost")
                server.expect_log("Connection with master lost")
            for leader, replica in ((ours, redis), (redis, ours)):
                with leader.connect() as client, replica.connect() as other:
                    client.call("FLUSHALL")
                    client.call("SET", "source", "value")
                    payload = client.call("DUMP", "source")
                    client.call("RESTORE", "k", 10**9, payload, option, value)
                    other.call("FLUSHALL")  # deletes the key of the previous round
                    other.call("REPLICAOF", "127.0.0.1", leader.port)
                    wait_until(lambda: other.call("EXISTS", "k") == 1, what="the snapshot")
                    got = other.call("OBJECT", option, "k")
                    self.assertAlmostEqual(got, value, delta=20)
                    other.call("REPLICAOF", "NO", "ONE")
                    # The server logs a warning if it ends while its child process saves. So the
                    # test waits until the child process has ended.
                    wait_until(
                        lambda: b"rdb_bgsave_in_progress:0" in client.call("INFO", "persistence"),
                        what="the end of the child",
                    )

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
            # The server may evict further keys between DBSIZE and INFO. So the test waits until the
            # number of keys matches the number of evicted keys.
            wait_until(
                lambda: client.call("DBSIZE") == 16_000 - figure(client, "evicted_keys"),
                what=lambda: f"{client.call('DBSIZE')} keys are left, "
                f"{figure(client, 'evicted_keys')} of 16000 are counted as gone: the same sum",
            )

    def test_one_client_near_the_limit_is_never_refused(self):
        server = self.start_server("--maxmemory-policy", "allkeys-lru")
        with server.connect() as client:
            # Makes the hash tables grow before the test sets the limit, because hash tables use
            # memory too.
            for i in range(300):
                client.call("SETEX", f"old:{i}", 1000, b"v" * 1000)
            limit = memory(client) + 100_000
            client.call("CONFIG", "SET", "maxmemory", limit)
            for i in range(6000):
                self.assertEqual(client.call("SETEX", f"k:{i}", 1000, b"v" * 5000), b"OK")
            self.assertLess(figure(client, "used_memory_peak", "memory"), limit + (1 << 20))

    def test_big_values_in_pipelines_stay_at_the_limit(self):
        server = self.start_server("--maxmemory-policy", "allkeys-lru", "--maxmemory", "20mb")
        with server.connect() as client:
            for i in range(0, 200, 10):
                replies = client.pipeline(
                    [("SET", f"k:{j}", b"v" * 1_000_000) for j in range(i, i + 10)]
                )
                self.assertEqual([reply for reply, _ in replies], [b"OK"] * 10)
            peak = figure(client, "used_memory_peak", "memory")
            self.assertLess(peak, (20 << 20) + 600_000, "room is made before values are read")
            self.assertGreater(figure(client, "evicted_keys"), 150)

    def test_big_values_of_many_threads_stay_at_the_limit(self):
        limit_bytes = 40 << 20
        value = b"v" * 1_000_000
        # On a busy machine an eviction could exceed its time before it has made room.
        server = self.start_server(
            "--maxmemory-policy", "allkeys-lru", "--maxmemory", limit_bytes, "--io-threads", 4,
            "--maxmemory-eviction-tenacity", 100,
        )  # fmt: skip

        def write(writer):
            with server.connect() as client:
                for i in range(60):
                    self.assertEqual(client.call("SET", f"k:{writer}:{i}", value), b"OK")

        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(write, range(8)))
        with server.connect() as client:
            peak = figure(client, "used_memory_peak", "memory")
            self.assertLess(peak, limit_bytes + 600_000, "threads do not exceed it together")
            self.assertGreater(figure(client, "evicted_keys"), 400)

    def test_values_of_a_transaction_take_memory_once(self):
        server = self.start_server()
        with server.connect() as client:
            client.call("MULTI")
            for i in range(10):
                self.assertEqual(client.call("SET", f"k:{i}", b"v" * 900_000), b"QUEUED")
            client.call("INFO", "memory")
            fields = client.call("EXEC")[-1].decode()
            meanwhile = int(re.search(r"used_memory:(\d+)", fields)[1])
            after = figure(client, "used_memory", "memory")
        self.assertLess(meanwhile, after + 3_000_000)

    def test_reads_publish_evictions_before_the_reply(self):
        """As in redis-server, evictions must be published before the reply to a read. Otherwise a
        client-side cache would drop the value that it has just read.
        """
        for server in (self.start_server(), self.start_redis()):
            server.expect_log("the new maxmemory value set via CONFIG SET")
            with server.connect() as client:
                client.call("HELLO", 3)
                client.call("CLIENT", "TRACKING", "ON")
                client.call("CONFIG", "SET", "maxmemory-policy", "volatile-random")
                client.call("SETBIT", "big", 1_600_000, 0)  # a key without expiry is not evicted
                client.call("SETEX", "goes", 10_000, "x")
                client.call("GET", "goes")
                # Sends three commands at once, so that the server executes them in one batch.
                client.send(
                    encode("CONFIG", "SET", "maxmemory", "100kb")
                    + encode("GETBIT", "big", 0)
                    + encode("SET", "new", "x")
                )
                seen = [client.read_reply()[0] for _ in range(4)]
                self.assertEqual(seen[0], b"OK")
                self.assertIsInstance(seen[1], Push)
                self.assertEqual(list(seen[1]), [b"invalidate", [b"goes"]])
                self.assertEqual(seen[2], 0)
                self.assertIsInstance(seen[3], ErrorReply)


class BuffersTest(ServerTest):
    """As in redis-server, the memory of replicas' buffers and of invalidation messages must not
    cause evictions."""

    KEYS = 50

    def start(self, *options):
        server = self.start_server(
            "--io-threads", 1, "--maxmemory-policy", "allkeys-lru", "--appendonly", "no", *options
        )
        server.expect_log("the new maxmemory value set via CONFIG SET")
        return server

    def fill(self, client):
        for i in range(self.KEYS):
            client.call("SETRANGE", f"key:{i}", 100_000, "x")

    def limit(self, client, more):
        client.call("CONFIG", "SET", "maxmemory", memory(client) + more)

    def evicted(self, client):
        return figure(client, "evicted_keys")

    def test_a_slow_replica_evicts_no_keys(self):
        server = self.start("--repl-diskless-sync-delay", 0, "--repl-backlog-size", "16kb")
        server.expect_log("Connection with replica .* lost|is disconnected")
        with server.connect() as client:
            self.fill(client)
            replica = RawReplica(server.port)
            replica.full_sync()
            wait_until(lambda: "state=online" in info(client).get("slave0", ""))
            self.limit(client, 1 << 20)
            for _ in range(300):
                client.call("SETRANGE", "key:0", 0, b"v" * 100_000)
            memory_fields = info(client, "memory")
            buffers = int(memory_fields["mem_clients_slaves"])
            self.assertGreater(buffers, 10_000_000)
            exempt = int(memory_fields["mem_not_counted_for_evict"])
            self.assertAlmostEqual(exempt, buffers, delta=50_000)
            self.assertGreater(memory(client), figure(client, "maxmemory", "memory") + 5_000_000)
            self.assertEqual(self.evicted(client), 0)
            self.assertEqual(client.call("DBSIZE"), self.KEYS)
            replica.close()
            wait_until(
                lambda: figure(client, "mem_clients_slaves", "memory") == 0,
                what="the end of the replica's buffer",
            )

    def test_the_log_s_buffers_evict_no_keys(self):
        server = self.start("--appendonly", "yes", "--appendfsync", "no")
        clients = [server.connect() for _ in range(48)]
        with server.connect() as client:
            self.fill(client)
            # In one round of the event loop, the thread collects the commands of all clients.
            self.limit(client, 1 << 20)
            for _ in range(20):
                for each in clients:
                    each.send(encode("SETRANGE", "key:0", 0, b"v" * 50_000))
                for each in clients:
                    self.assertEqual(each.read_reply()[0], 100_001)
            buffer = figure(client, "mem_aof_buffer", "memory")
            self.assertEqual(figure(client, "mem_not_counted_for_evict", "memory"), buffer)
            self.assertEqual(self.evicted(client), 0)
            self.assertEqual(client.call("DBSIZE"), self.KEYS)
        for each in clients:
            each.close()

    def test_invalidations_evict_no_further_keys(self):
        server = self.start("--maxmemory-eviction-tenacity", 100, "--enable-debug-command", "yes")
        readers = [server.connect() for _ in range(10)]
        with server.connect() as client:
            for reader in readers:
                reader.call("HELLO", 3)
                reader.call("CLIENT", "TRACKING", "ON")
            keys = [f"{i}{'x' * 1000}" for i in range(300)]
            for key in keys:
                client.call("SET", key, "x")
            for reader in readers:
                reader.pipeline([("GET", key) for key in keys])
            # The periodic task could evict again before the first eviction's messages are sent.
            client.call("DEBUG", "PAUSE-CRON", 1)
            self.limit(client, -40_000)
            evicted = self.evicted(client)
            self.assertGreaterEqual(evicted, 10)
            self.assertLessEqual(evicted, 50)
        for reader in readers:
            reader.close()


class ChildTest(ServerTest):
    """Tests filters that are deleted while a child process saves. The server keeps only arrays that
    the child process may still read, and counts their memory as used.
    """

    def resident_arrays(self, client):
        return figure(client, "mem_filter_arrays_resident", "memory")

    def is_all_freed(self, client):
        """Returns whether no deleted value waits to be freed. Until then used_memory is too low,
        because it does not include such values."""
        return figure(client, "lazyfree_pending_objects", "memory") == 0

    def make(self, client, key):
        """Makes a filter of 1.2 MB, with enough items to touch all pages of its array."""
        client.call("BF.RESERVE", key, "0.01", 1_000_000)
        client.call("BF.MADD", key, *range(5000))

    def test_filters_made_after_the_fork_are_freed(self):
        slow = ("--enable-debug-command", "yes", "--rdb-key-save-delay", 5_000_000)
        server = self.start_server("--maxmemory", "20mb", *slow)
        with server.connect() as client:
            self.make(client, "old")
            client.call("BGSAVE")
            children = []
            wait_until(lambda: children.extend(server.suspend_children()) or children)
            for i in range(40):
                self.make(client, f"new:{i}")
                self.assertEqual(client.call("DEL", f"new:{i}"), 1)
            wait_until(
                lambda: self.resident_arrays(client) < 3 << 20 and self.is_all_freed(client),
                what=lambda: f"{self.resident_arrays(client)} bytes of one filter",
            )
            kept = "mem_filter_arrays_kept_for_child"
            self.assertEqual(figure(client, kept, "memory"), 0)
            before = memory(client)
            client.call("DEL", "old")
            wait_until(
                lambda: figure(client, kept, "memory") > 1_100_000 and self.is_all_freed(client),
                what="the old filter is kept",
            )
            self.assertGreater(memory(client), before - 100_000)
            for child in children:
                os.kill(child, signal.SIGCONT)
            wait_until(lambda: figure(client, kept, "memory") == 0, what="the old filter goes")
            self.assertLess(memory(client), before - 1_000_000)


if __name__ == "__main__":
    unittest.main()
