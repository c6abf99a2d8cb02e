#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""maxmemory: with several threads that write, and with redis-server as leader and as replica."""

import threading
import unittest

from harness import ServerTest, wait_until
from harness.resp import ErrorReply


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


class EvictionTest(ServerTest):

    def test_uses_come_with_the_snapshot_here_and_there(self):
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
                    other.call("FLUSHALL")  # or the key may be the one from the other direction
                    other.call("REPLICAOF", "127.0.0.1", leader.port)
                    wait_until(lambda: other.call("EXISTS", "k") == 1, what="the snapshot")
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


if __name__ == "__main__":
    unittest.main()
