#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Kills, suspends, restarts and cuts off leaders and members of etcd, one fault after the other.

The cluster has three shards of two servers, and an etcd of three members. During all faults,
redis-py, redis-cli, ioredis and node-redis write. The log of acknowledgements shows which server
acknowledged which write, and when.

Environment:
  BLOOMERY_FAULTS  names of the faults to try, with spaces between (default: all)
"""

import json
import os
import time
import unittest
from collections import Counter

from harness import let_time_pass, wait_until
from harness.cluster import NAME
from harness.cluster_load import ClusterLoadTest
from harness.cluster_writers import WriterProgram, program, read_command
from harness.counts import IS_LONG

FAULTS = os.environ.get(
    "BLOOMERY_FAULTS",
    "kill_a_leader stop_a_leader cut_a_leader_off stop_etcds_leader kill_etcds_leader "
    "end_a_lease_early restart_a_leader stop_all_of_etcd",
).split()
# Seconds that a leader's permit to acknowledge writes lasts: 0.6 of cluster-node-timeout.
PERMIT_S = 1.5
ISLAND = 2  # Index of the shard whose leader can be cut off from the network.


class ClusterFaultsTest(ClusterLoadTest):
    def test_faults_one_after_the_other(self):
        began = time.monotonic()
        self.start_load("--appendonly", "yes")
        for name in FAULTS:
            since = time.monotonic()
            print(f"{name}:", flush=True)
            getattr(self, name)()
            print(f"  {self.check_present()} writes, {time.monotonic() - since:.0f} s", flush=True)
        for writer in self.writers:
            writer.stop()
        self.check_all()
        print(f"all of it took {time.monotonic() - began:.0f} s", flush=True)

    if IS_LONG:

        def test_default_timeout(self):
            self.start_load(timeout_ms=5000)
            self.kill_a_leader()
            self.check_present()

    def check_takeover(self, lane, witness, new, since):
        took = self.wait_for_takeover(witness, new, since)
        stall = self.pulse.stalled_since(since)
        each = self.wait_for_writers(since, [lane])
        summary = ", ".join(f"{name} {seconds:.1f}" for name, seconds in each.items())
        print(f"  taken over after {took:.2f} s ({stall:.2f} s stalled); {summary} s", flush=True)
        self.assertEqual(self.shard(lane)["leader"], new.node_id)

    def kill_a_leader(self):
        self.wait_for_writers(time.monotonic())
        witness, old, new = self.watch(0)
        killed = time.monotonic()
        old.crash()
        self.check_takeover(0, witness, new, killed)
        witness.stop()
        self.check_order(witness, old, new)
        self.check_errors(killed, [0])
        self.restart(old)
        self.wait_until_whole()

    def stop_a_leader(self):
        witness, old, new = self.watch(1)
        stopped = time.monotonic()
        old.suspend()
        self.check_takeover(1, witness, new, stopped)
        wait_until(lambda: witness.waiting[old.port] > 110, "many writes wait for the stopped one")
        old.resume()
        self.wait_for_role(old, b"slave")
        # After it is resumed, the former leader answers all requests that it received while
        # suspended.
        wait_until(lambda: witness.waiting[old.port] < 5, "the stopped one answers")
        witness.stop()
        replies = [one for one in witness.replies if one.port == old.port and one.sent > stopped]
        words = Counter(one.text.split(b" ")[0].decode() for one in replies)
        print(f"  it answered what had waited for it: {dict(words)}", flush=True)
        self.assertGreater(len(replies), 100)
        # An empty reply means that the connection was closed before the reply. The result of the
        # write is then unknown.
        self.assertLessEqual(set(words), {"-MOVED", "-CLUSTERDOWN", ""})
        self.check_order(witness, old, new)
        self.check_errors(stopped, [1])
        self.wait_until_whole()

    def wait_for_role(self, server, role):
        def has_role():
            with server.connect(timeout_s=5) as connection:
                return connection.call("ROLE")[0] == role

        wait_until(has_role, f"{server.port} is {role}")

    def cut_a_leader_off(self):
        if not self.network.can_cut:
            print("SKIPPED cut_a_leader_off: no network namespaces here", flush=True)
            return
        witness, old, new = self.watch(ISLAND)
        island = self.network.prefix(0)
        insiders = [
            WriterProgram(kind, [*island, *program(kind, f"island-{kind}", addresses, [ISLAND])])
            for kind, addresses in (
                ("loyal", [f"{old.host}:{old.port}"]),
                ("redis-py", [f"{server.host}:{server.port}" for server in self.servers]),
            )
        ]
        for insider in insiders:
            self.addCleanup(insider.stop)
            wait_until(lambda one=insider: one.last_sent(ISLAND), f"{insider.name} writes")
        self.network.cut(0)
        cut = time.monotonic()
        self.check_takeover(ISLAND, witness, new, cut)
        let_time_pass(1, why="clients on the island go on asking the old leader")
        self.heal(0)
        self.wait_for_role(old, b"slave")
        first = witness.first_of(new)
        for insider in insiders:
            insider.stop()
            inside = [ack.at for ack in insider.acknowledged if cut < ack.at and ack.port]
            acks = [ack for ack in insider.acknowledged if cut < ack.at < first]
            last = max((ack.at for ack in acks), default=cut) - cut
            summary = f"{len(acks)} acknowledged, the last {last:.2f} s after the cut"
            print(f"  {insider.name}: {summary}", flush=True)
            self.assertLess(last, PERMIT_S + self.pulse.stalled_since(cut))
            if insider.name == "loyal":
                self.assertEqual([at for at in inside if at > first], [])
                self.assertTrue(acks, "it was served for a while")
        witness.stop()
        self.check_order(witness, old, new)
        # Clients that still reach the other servers see errors only from the shard whose leader was
        # cut off.
        self.check_errors(cut, [ISLAND])
        self.wait_until_whole()

    def leaders(self):
        return [shard["leader"] for shard in self.topology()["shards"].values()]

    def stop_etcds_leader(self):
        """A leader of etcd that was suspended for 7 s may revoke leases that another member of etcd
        has extended."""
        before = self.leaders()
        member = self.etcd.leader()
        stopped = time.monotonic()
        member.suspend()
        let_time_pass(7, why="its leases end meanwhile, as far as it knows")
        member.resume()
        let_time_pass(3, why="a failover that nothing asks for would come in it")
        after = self.leaders()
        changed = [lane for lane in range(3) if before[lane] != after[lane]]
        print(f"  needless failovers: {len(changed)}", flush=True)
        self.assertLessEqual(len(changed), 1)
        self.unsafe += [(lane, stopped, time.monotonic()) for lane in changed]
        self.check_errors(stopped, changed)
        self.wait_until_whole()

    def kill_etcds_leader(self):
        before = self.leaders()
        killed = time.monotonic()
        self.etcd.leader().kill()
        self.etcd.leader()  # waits until etcd has a new leader
        let_time_pass(3, why="a failover that nothing asks for would come in it")
        self.wait_for_writers(time.monotonic())
        self.assertEqual(self.leaders(), before)
        self.check_errors(killed, [])
        self.etcd.start()

    def end_a_lease_early(self):
        """Revokes the lease of a shard's leader, as a member of etcd that lags may do. The process
        of the shard's leader keeps running."""
        witness, old, _ = self.watch(0)
        key = f"bloomery/{NAME}/alive/{old.node_id}"
        stored = json.loads(self.etcd.control("get", "-w", "json", key))["kvs"][0]
        revoked = time.monotonic()
        self.etcd.control("lease", "revoke", f"{stored['lease']:x}")
        let_time_pass(4, why="a failover that nothing asks for would come in it")
        self.wait_for_writers(time.monotonic())
        witness.stop()
        leader = self.leader(0)
        print(f"  needless failovers: {int(leader is not old)}", flush=True)
        if leader is not old:
            self.unsafe.append((0, revoked - 0.5, witness.first_of(leader)))
            self.check_order(witness, old, leader)
        self.check_errors(revoked, [0])
        self.wait_until_whole()

    def restart_a_leader(self):
        """Kills a leader and restarts it before the cluster detects its death. No write is lost,
        because the leader has its append log and its replica has all data."""
        old = self.leader(1)
        killed = time.monotonic()
        old.crash()
        self.restart(old)
        each = self.wait_for_writers(killed + 0.1, [1])
        summary = ", ".join(f"{name} {seconds:.1f}" for name, seconds in each.items())
        print(f"  writes went on after {summary} s", flush=True)
        self.check_errors(killed, [1], may_be_down=True)
        self.wait_until_whole()

    def stop_all_of_etcd(self):
        """While etcd is suspended, one server of each shard crashes. The leader of one shard and a
        replica of another are restarted immediately. The leader of the third shard is restarted
        only after etcd resumes."""
        restarted, doomed, other = range(3)
        witness, old, new = self.watch(doomed)
        back, replica = self.leader(restarted), self.replica(other)
        stopped = time.monotonic()
        for member in self.etcd.members:
            member.suspend()
        let_time_pass(5, why="without etcd the leases would have ended, twice over")
        self.check_errors(stopped, [])
        self.wait_for_writers(time.monotonic())
        for server, lane in ((replica, other), (back, restarted)):
            server.crash()
            self.check_restarted(self.restart(server), lane, leads=server is back)
        killed = time.monotonic()
        old.crash()
        let_time_pass(5, why="with etcd a failover would come in it")
        self.assertIsNone(witness.first_of(new), "a failover waits for etcd")
        self.check_errors(stopped, [restarted, doomed], may_be_down=True)
        self.wait_for_writers(time.monotonic(), [other])
        resumed = time.monotonic()
        for member in self.etcd.members:
            member.resume()
        took = self.wait_for_takeover(witness, new, killed) + killed - resumed
        print(f"  taken over {took:.1f} s after etcd is back", flush=True)
        self.restart(old)
        self.wait_until_whole()
        witness.stop()
        self.check_order(witness, old, new)

    def check_restarted(self, server, lane, leads):
        """Checks a server that was restarted while etcd is suspended. The server knows the topology
        from its file, so it serves reads after READONLY, but no writes.
        """
        writer = self.writers[0]
        acks = [ack for ack in writer.acknowledged if ack.lane == lane and ack.number % 3 == 0]
        words, value = read_command(writer.name, lane, acks[0].number)
        refusal = "CLUSTERDOWN" if leads else "MOVED"
        with server.connect() as connection:
            wait_until(
                lambda: connection.call("SET", words[1], "x").text.startswith(refusal), refusal
            )
            self.assertTrue(connection.call(*words).text.startswith(refusal))
            self.assertEqual(connection.call("READONLY"), b"OK")
            wait_until(lambda: connection.call(*words) == value, "it has its data")
            summary = connection.call("CLUSTER", "INFO")
            self.assertIn(b"cluster_etcd:down", summary)


if __name__ == "__main__":
    unittest.main()
