#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests rolling restarts: all members of a cluster restart one after another, each as soon as
`bloomery-cluster status` shows every member in sync. Meanwhile redis-py, ioredis, node-redis and
valkey-glide write with their default timeouts and retries. In the default tier valkey-glide gets a
longer timeout than its 250 ms, because other processes may delay a reply for longer.

If a connection is closed before the reply, the outcome of the request is unknown. Every other error
that a library reports to its caller fails the test.
"""

import re
import signal
import time
import unittest

from harness import wait_until
from harness.cluster_load import ClusterLoadTest
from harness.cluster_writers import TAGS
from harness.counts import IS_LONG, count
from harness.redirects import FollowingClient

ROUNDS = count("ROLLING_RESTARTS")
SHARDS = 2
MOVED_MAX = 2
PAUSE_P99_S = 0.3
# Texts of errors by which the libraries report that a connection ended before the reply.
CONNECTION_CLOSED = re.compile(r"Socket closed unexpectedly|ECONNRESET|EPIPE")


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1))]


class ClusterRollingTest(ClusterLoadTest):
    def test_rolling_restarts_lose_nothing(self):
        self.start_shards(SHARDS, "--appendonly", "yes")
        self.start_writers(
            ("redis-py-defaults", None),
            ("ioredis-defaults", "ioredis6"),
            ("redis-defaults", "redis6"),
            ("valkey-glide-defaults" if IS_LONG else "valkey-glide", "valkey_glide"),
        )
        followers = self.start_followers()
        self.restarts = []  # tuples (begin, end, shard, whether it was the leader) of each restart
        begin = time.monotonic()
        for _ in range(ROUNDS):
            for shard in range(SHARDS):
                lane = self.lanes_of(shard)[0]
                for server in (self.replica(lane), self.leader(lane)):
                    self.roll(server, shard)
            self.wait_for_status()
            self.wait_for_writers(time.monotonic())
            self.check_present()
        for writer in self.writers:
            writer.stop()
        for client in followers:
            client.end()
        self.check_all()
        self.check_followers(followers)
        self.check_pauses()
        self.check_no_error(begin)

    def start_followers(self):
        followers = []
        for lane in (self.lanes_of(shard)[0] for shard in range(SHARDS)):
            servers = [self.leader(lane), self.replica(lane)]
            name = f"{TAGS[lane]}:followed"
            client = FollowingClient(name, *(server.port for server in servers))
            self.addCleanup(client.end)
            followers.append(client)
        return followers

    @staticmethod
    def lanes_of(shard):
        return [lane for lane in range(len(TAGS)) if lane * SHARDS // len(TAGS) == shard]

    def roll(self, server, shard):
        self.wait_for_status()
        was_leader = self.leader(self.lanes_of(shard)[0]) is server
        begin = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait_for_exit(), 0)
        self.restarts.append((begin, time.monotonic(), shard, was_leader))
        self.restart(server)

    def wait_for_status(self):
        wait_until(
            lambda: self.states() == ["ok", "in sync"] * SHARDS, lambda: f"whole: {self.states()}"
        )

    def check_followers(self, followers):
        errors = [
            error for client in followers for error in client.errors
            if not self.is_of_the_machine(error[0])
        ]  # fmt: skip
        self.assertEqual(errors, [])
        moved = max(max(client.moved) for client in followers)
        print(f"{sum(client.added for client in followers)} items added, "
              f"{sum(client.unknown for client in followers)} with an unknown attempt, "
              f"at most {moved} MOVED a request", flush=True)  # fmt: skip
        self.assertLessEqual(moved, MOVED_MAX)

    def check_no_error(self, since):
        errors = {
            writer.name: [
                (when, text) for _, when, text in writer.errors
                if when > since and not self.is_of_the_machine(when)
            ]
            for writer in self.writers
        }  # fmt: skip
        unknown = {name: len(found) for name, found in errors.items()}
        print(f"errors of callers: {unknown}", flush=True)
        wrong = [
            (name, text, self.restart_before(when)) for name, found in errors.items()
            for when, text in found if not CONNECTION_CLOSED.search(text)
        ]  # fmt: skip
        self.assertEqual(wrong, [], f"{len(wrong)} errors; {self.cluster_logs()}")

    def restart_before(self, when):
        """Describes the last restart that began before the time of an error."""
        before = [restart for restart in self.restarts if restart[0] < when]
        if not before:
            return "before the first restart"
        begin, end, shard, was_leader = before[-1]
        role = "leader" if was_leader else "replica"
        return (
            f"{when - begin:.2f} s after SIGTERM to the {role} of shard {shard} (restart "
            f"{len(before)}), {when - end:.2f} s after its end"
        )

    def check_pauses(self):
        """Measures the longest request of each client to each shard while the shard's leader
        restarts. With BLOOMERY_TIER=long, the 99th percentile of these times must be below
        PAUSE_P99_S."""
        pauses = []
        for begin, end, shard, _ in filter(lambda restart: restart[3], self.restarts):
            for writer in self.writers:
                for lane in self.lanes_of(shard):
                    took = [
                        ack.at - ack.sent for ack in list(writer.acknowledged)
                        if ack.lane == lane and ack.sent < end and ack.at > begin
                    ]  # fmt: skip
                    stall = self.pulse.stalled_between(begin, end)
                    pauses.append(max(0.0, max(took, default=0.0) - stall))
        p99 = percentile(pauses, 0.99)
        figures = {"median": percentile(pauses, 0.5), "p99": p99, "longest": max(pauses)}
        shown = ", ".join(f"{name} {value * 1000:.0f} ms" for name, value in figures.items())
        print(f"{len(pauses)} pauses: {shown}", flush=True)
        if IS_LONG:
            self.assertLess(p99, PAUSE_P99_S)


if __name__ == "__main__":
    unittest.main()
