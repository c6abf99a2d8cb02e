#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Planned changes of leaders under redis-py, redis-cli, ioredis and node-redis: CLUSTER FAILOVER
and SIGTERM hand the shard over, and no write is lost. The pauses are printed: how long they are
depends on the machine, too."""

import signal
import time
import unittest

from harness import wait_until
from harness.cluster_load import SHARDS, ClusterLoadTest


class ClusterHandoverTest(ClusterLoadTest):
    def test_no_write_is_lost(self):
        self.start_load("--appendonly", "yes")
        for lane in range(SHARDS):
            self.fail_over(lane)
        for lane in (0, 2):
            self.terminate(lane)
        for writer in self.writers:
            writer.stop()
        self.check_all()

    def fail_over(self, lane):
        old, new = self.leader(lane), self.replica(lane)
        begin = time.monotonic()
        with new.connect() as connection:
            self.assertEqual(connection.call("CLUSTER", "FAILOVER"), b"OK")
        self.check_handover(f"CLUSTER FAILOVER of s{lane + 1}", lane, old, new, begin)
        # All clients follow MOVED.
        errors = [one for w in self.writers for one in w.errors if one[1] > begin]
        self.assertEqual(errors, [], f"since {begin}; {self.told()}")
        self.wait_until_whole()

    def terminate(self, lane):
        old, new = self.leader(lane), self.replica(lane)
        begin = time.monotonic()
        old.process.send_signal(signal.SIGTERM)
        self.check_handover(f"SIGTERM of s{lane + 1}", lane, old, new, begin)
        # Without this line the replica waited for the lease to expire.
        old.wait_for_log(f"the shard is handed over to {new.node_id}")
        self.assertEqual(old.wait_for_exit(), 0)
        self.check_errors(begin, [lane])
        self.restart(old)
        self.wait_until_whole()

    def check_handover(self, what, lane, old, new, begin):
        wait_until(lambda: self.leader(lane) is new, "the replica leads")
        took = time.monotonic() - begin
        self.wait_for_writers(time.monotonic() + 1, [lane])
        pauses = {writer.name: self.longest_pause(writer, lane, begin) for writer in self.writers}
        stall = self.pulse.stalled_since(begin)
        told = ", ".join(f"{name} {pause * 1000:.0f}" for name, pause in pauses.items())
        print(f"{what}: {took:.2f} s; longest pauses {told} ms; "
              f"{stall * 1000:.0f} ms stalled", flush=True)  # fmt: skip
        self.check_present()

    @staticmethod
    def longest_pause(writer, lane, begin):
        times = [ack.at for ack in writer.acknowledged if ack.lane == lane]
        return max(b - a for a, b in zip(times, times[1:]) if b > begin)


if __name__ == "__main__":
    unittest.main()
