#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests replicas that send arbitrary data. The leader must survive, serve its clients, and keep its
other replicas.
"""

import random
import socket
import threading
import time
import unittest

from harness import DEADLINE_S, SLOW, ServerTest, seed_from_environment, wait_until
from harness.info import info
from harness.replication_peer import RawReplica
from harness.resp import encode


def random_words(rng, replication_id, end):
    number = rng.choice([-1, 0, 1, 7, 10**6, 2**31, 2**63 - 1, -(2**63), "x", "", 1.5])
    name = rng.choice([replication_id, "?", "0" * 40, "f" * 40, "", "x" * 1000])
    return rng.choice(
        [
            ("REPLCONF", "ACK", number),
            ("REPLCONF", "ACK", number, "FACK", number),
            ("REPLCONF", "capa", rng.choice(["eof", "psync2", "nothing"])),
            ("REPLCONF", "listening-port", number),
            ("REPLCONF", "ip-address", "a" * rng.choice([0, 10, 300])),
            ("REPLCONF", "rdb-only", number),
            ("REPLCONF", "rdb-filter-only", rng.choice(["", "functions", "keys", "  "])),
            ("REPLCONF", "getack", "*"),
            ("REPLCONF", "version", "9.0.0"),
            ("REPLCONF",),
            ("PSYNC", name, number),
            ("PSYNC", replication_id, max(1, end - rng.randrange(-100, 30_000))),
            ("PSYNC", "?", "-1"),
            ("SYNC",),
            ("CLIENT", "REPLY", rng.choice(["ON", "OFF", "SKIP"])),
            ("WAIT", rng.randrange(3), rng.randrange(1, 30)),
            ("SET", "a", rng.randrange(100)),
            ("MULTI",),
            ("EXEC",),
            ("PING",),
        ]
    )


class HostileReplicaTest(ServerTest):
    def attack(self, port, seed, replication_id, until):
        rng = random.Random(seed)
        while time.monotonic() < until:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as link:
                    link.settimeout(0.02)
                    for _ in range(rng.randrange(1, 30)):
                        data = encode(*random_words(rng, replication_id, self.end))
                        if rng.random() < 0.05:
                            data = rng.randbytes(rng.randrange(1, 50))
                        if rng.random() < 0.05:
                            data = data[: rng.randrange(len(data))]
                        link.sendall(data)
                        if rng.random() < 0.5:
                            try:
                                link.recv(rng.choice([1, 100, 100_000]))
                            except socket.timeout:
                                pass
            except OSError:
                pass

    def test_a_storm_of_them(self):
        seed = seed_from_environment()
        self.end = 0  # last known offset of the leader's stream
        leader = self.start_server(
            "--repl-diskless-sync-delay", "0", "--repl-timeout", int(max(5, 5 * SLOW)),
            "--repl-backlog-size", "20kb",
            "--client-output-buffer-limit", "replica 1mb 100kb 1",
        )  # fmt: skip
        leader.expect_log(r".*")
        with leader.connect() as client:
            # Filters of the layout redisbloom can also be sent to replicas that run RedisBloom.
            client.call("BF.RESERVE", "filter", "0.01", "100000", "LAYOUT", "redisbloom")
            first = RawReplica(leader.port)
            first.full_sync()
            until = time.monotonic() + 8
            attackers = [
                threading.Thread(target=self.attack, args=(leader.port, seed + i, first.id, until))
                for i in range(6)
            ]
            for attacker in attackers:
                attacker.start()
            while time.monotonic() < until:
                client.call("BF.ADD", "filter", time.monotonic())
                client.call("SET", "b", "x" * 2000)
                self.end = int(info(client)["master_repl_offset"])
            for attacker in attackers:
                attacker.join()
            first.close()
            wait_until(lambda: info(client)["connected_slaves"] == "0", "the end of the storm")
            self.assertEqual(client.call("PING"), b"PONG")
            good = RawReplica(leader.port)
            good.full_sync()
            client.call("SET", "last", "1")
            good.read_stream_until(encode("SET", "last", "1"))
            good.close()
            stats = info(client, "stats")
        print({name: stats[name] for name in ("sync_full", "sync_partial_ok", "sync_partial_err")})


if __name__ == "__main__":
    unittest.main(verbosity=2)
