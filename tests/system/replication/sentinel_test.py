#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Debian's redis-sentinel watches our leader and two replicas and fails over, while clients with
Sentinel support continue to write.

Environment:
  BLOOMERY_FAILOVERS  number of failovers
  BLOOMERY_SERVER     may be a redis-server, to distinguish a wrong test from a wrong server

The causes of the failovers alternate: kill -9, SIGSTOP, and a network cut if the machine allows
network namespaces.
"""

import os
import pathlib
import shutil
import tempfile
import time
import unittest

from harness import ROOT, SERVER_IS_REDIS, SLOW, ServerTest, let_time_pass, wait_until
from harness.counts import count
from harness.node import SCRIPTS
from harness.sentinel import NAME, PASSWORD, Cluster, quietly
from harness.sentinel_writers import ProgramWriter, PythonWriter
from harness.settings import module_command

FAILOVERS = count("FAILOVERS")
MODULES = pathlib.Path(os.environ.get("BLOOMERY_NODE_MODULES", ROOT / "build"))
WRITER_SCRIPT = SCRIPTS / "sentinel_writer.cjs"
# Name of a filter to which the writers add, if the server has filters.
FILTER = None if SERVER_IS_REDIS else "seen"
LAG_MAX_S = 2
# After the network cut, a leader may accept writes for min-replicas-max-lag and this many seconds.
# Replicas acknowledge once a second, and the leader checks once a second. A busy machine delays
# both.
LAG_TOLERANCE_S = 2 + 2 * SLOW


class SentinelTest(ServerTest):
    def start_cluster(self, sentinel_changes=(), **changes):
        directory = tempfile.mkdtemp(prefix="bloomery-sentinel-")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        cluster = Cluster(
            directory,
            {name.replace("_", "-"): value for name, value in changes.items()},
            sentinel_changes,
        )
        self.addCleanup(self.stop_cluster, cluster)
        cluster.start()
        return cluster, cluster.wait_until_whole()

    def stop_cluster(self, cluster):
        problems = cluster.stop()
        self.assertFalse(problems, "\n".join(map(str, problems)))

    def start_writer(self, writer):
        self.addCleanup(writer.stop)
        return writer.start()

    def start_writers(self, cluster):
        sentinels = cluster.sentinel_addresses()
        words = [f"{address}:{port}" for address, port in sentinels]
        writers = [
            PythonWriter(sentinels, NAME, PASSWORD, filter_key=FILTER),
            PythonWriter(sentinels, NAME, PASSWORD, confirmed=True),
        ]
        for folder in ("redis6", "ioredis6"):
            modules = MODULES / f"node_modules_{folder}"
            self.assertTrue(
                (modules / ".installed").exists(),
                f"{modules} is missing: run scripts/install_node_packages.sh",
            )
            package = folder.rstrip("6")
            command = ["node", WRITER_SCRIPT, folder, package, modules, NAME, PASSWORD, *words]
            writers.append(ProgramWriter(folder, command))
        return [self.start_writer(writer) for writer in writers]

    # Tests of ACL rights.

    def test_sentinel_and_replicas_need_few_rights(self):
        """Sentinel and replicas need only the rights that Redis' documentation lists."""
        rights = (
            "-@all allchannels +multi +slaveof +ping +exec +subscribe +config|rewrite +role "
            "+publish +info +client|setname +client|kill +script|kill"
        )
        cluster, leader = self.start_cluster(
            {f"sentinel auth-user {NAME}": "watcher", f"sentinel auth-pass {NAME}": "see"},
            **{
                "user watcher": f"on >see {rights}",
                "user follower": "on >copy -@all +psync +replconf +ping",
                "masteruser": "follower",
                "masterauth": "copy",
            },
        )
        clients = leader.call("CLIENT", "LIST")
        self.assertIn(b"user=watcher", clients)
        self.assertIn(b"user=follower", clients)
        leader.process.crash()
        others = [node for node in cluster.nodes if node is not leader]
        wait_until(
            lambda: quietly(cluster.leader_known_to, others[0]) not in (None, leader),
            "another leader",
        )
        leader.start()
        new_leader = cluster.wait_until_whole()
        self.assertIsNot(new_leader, leader)
        self.assertEqual(new_leader.call("SET", "key", "value"), b"OK")
        cluster.wait_until_equal(new_leader)
        # No server has rejected a command of Sentinel or of a replica.
        for node in cluster.nodes:
            self.assertEqual(node.call("ACL", "LOG"), [])

    # The methods below cause and test failovers.

    def strike(self, cluster, leader, way):
        if way == "kill -9":
            leader.process.crash()
        elif way == "SIGSTOP":
            leader.process.suspend()
        else:
            cluster.network.cut(leader.index)

    def repair(self, cluster, leader, way):
        if way == "kill -9":
            leader.start()
        elif way == "SIGSTOP":
            leader.process.resume()
        else:
            cluster.network.heal(leader.index)

    def fail_over(self, cluster, writers, way):
        """Kills, suspends or cuts off the leader. Returns each writer's pause in seconds."""
        old = cluster.wait_until_whole()
        for writer in writers:
            start = time.monotonic()
            wait_until(lambda: writer.first_after(start), f"a write of {writer.name}")
        struck = time.monotonic()
        self.strike(cluster, old, way)
        # The old leader's last replies may arrive late, so replies within half a second after its
        # failure do not count.
        grace = struck + 0.5
        try:
            for writer in writers:
                wait_until(
                    lambda: writer.first_after(grace),
                    lambda: f"a write of {writer.name} after {way}; errors: {writer.errors}",
                )
        finally:
            self.repair(cluster, old, way)
        times = {writer.name: writer.first_after(grace) - struck for writer in writers}
        new = cluster.wait_until_whole()
        self.assertIsNot(new, old)
        self.check_files(cluster, new)
        return times

    def check_files(self, cluster, leader):
        """Checks that the configuration file of each server states the server's current role."""
        line = f"replicaof {leader.address} {leader.port}"
        for node in cluster.nodes:
            lines = node.config_file.read_text().splitlines()
            found = [one for one in lines if one.startswith("replicaof ")]
            self.assertEqual(found, [] if node is leader else [line], f"node {node.index}")

    def lost_keys(self, leader, writer):
        """Returns the acknowledged writes that the leader does not have."""
        lost = []
        keys = [key for key, _ in writer.acknowledged]
        with leader.connect() as connection:
            for start in range(0, len(keys), 500):
                some = keys[start : start + 500]
                values = connection.pipeline([("GET", key) for key in some])
                lost += [k for k, (value, _) in zip(some, values) if value != k.encode()]
        return lost

    def check_transactions(self, leader, writer, lost):
        """Checks that both writes of each transaction exist, or neither of them."""
        if writer.filter_key is None:
            return
        keys = [key for key, _ in writer.acknowledged]
        with leader.connect() as connection:
            found = [connection.call("BF.EXISTS", writer.filter_key, key) for key in keys]
        self.assertEqual([key for key, there in zip(keys, found) if not there], lost)

    def test_failovers_while_clients_write(self):
        cluster, leader = self.start_cluster(min_replicas_to_write=0)
        if FILTER is not None:
            # The error rate is so low that a lost item cannot seem present.
            self.assertEqual(leader.call("BF.RESERVE", FILTER, "0.0000001", "100000"), b"OK")
        writers = self.start_writers(cluster)
        ways = ["kill -9", "partition", "SIGSTOP"]
        if not cluster.network.can_cut:
            ways.remove("partition")
        slowest = 0
        for number in range(FAILOVERS):
            way = ways[number % len(ways)]
            times = self.fail_over(cluster, writers, way)
            slowest = max(slowest, *times.values())
            summary = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in times.items())
            print(f"failover {number + 1} by {way}: {summary}", flush=True)
        for writer in writers:
            writer.stop()
        leader = cluster.wait_until_whole()
        keys = cluster.wait_until_equal(leader)
        lost = {writer.name: self.lost_keys(leader, writer) for writer in writers}
        self.check_transactions(leader, writers[0], lost[writers[0].name])
        for writer in writers:
            errors = sum(writer.errors.values())
            print(
                f"{writer.name}: {len(writer.acknowledged)} acknowledged, "
                f"{len(lost[writer.name])} of them lost, {errors} errors",
                flush=True,
            )
        print(f"slowest failover {slowest:.1f} s, {keys} keys on all three servers", flush=True)
        # WAIT for one replica is enough, because Sentinel promotes the replica with the most data.
        self.assertEqual(lost["python-wait"], [])

    def isolate(self, cluster, leader):
        """Cuts the leader off from its replicas, or from all other processes if the network can be
        cut.
        """
        if cluster.network.can_cut:
            return cluster.network.cut(leader.index)
        for node in cluster.nodes:
            if node is not leader:
                node.process.suspend()

    def reunite(self, cluster, leader):
        if cluster.network.can_cut:
            return cluster.network.heal(leader.index)
        for node in cluster.nodes:
            node.process.resume()

    def test_an_isolated_leader_stops_acknowledging(self):
        """Once min-replicas-max-lag has passed, an isolated leader with min-replicas-to-write 1
        acknowledges no more writes. So only writes that it acknowledged earlier can be lost.
        """
        cluster, old = self.start_cluster(min_replicas_max_lag=LAG_MAX_S)
        seeker = self.start_writer(PythonWriter(cluster.sentinel_addresses(), NAME, PASSWORD))
        # The client `loyal` is on the leader's side of the network cut and writes to this leader
        # only.
        loyal = self.start_writer(
            ProgramWriter(
                "loyal",
                [*old.prefix, *module_command("sentinel_writers"), old.address, old.port, PASSWORD],
            )
        )
        wait_until(lambda: loyal.acknowledged and seeker.acknowledged, "first writes")
        cut = time.monotonic()
        self.isolate(cluster, old)
        # On a busy machine isolate() takes long, and replicas may acknowledge until it returns.
        lag_over = time.monotonic() + LAG_MAX_S + LAG_TOLERANCE_S
        try:
            let_time_pass(
                lag_over + 2 - time.monotonic(), why="the leader must notice its replicas' lag"
            )
            if cluster.network.can_cut:
                wait_until(
                    lambda: seeker.first_after(lag_over), lambda: f"a write: {seeker.errors}"
                )
        finally:
            loyal.stop()
            self.reunite(cluster, old)
        leader = cluster.wait_until_whole()
        seeker.stop()
        cluster.wait_until_equal(leader)
        self.assertTrue(any("NOREPLICAS" in text for text in loyal.errors), loyal.errors)
        early = [key for key, at in loyal.acknowledged if cut < at <= lag_over]
        late = [key for key, at in loyal.acknowledged if at > lag_over]
        lost = set(self.lost_keys(leader, loyal)) | set(self.lost_keys(leader, seeker))
        lost_late = [key for key, at in seeker.acknowledged if at > lag_over and key in lost]
        print(
            f"the isolated leader acknowledged {len(early)} writes within its lag, {len(late)} "
            f"after it; {len(lost)} are lost, {len(lost_late) + len(late)} of them from after it",
            flush=True,
        )
        self.assertEqual(late + lost_late, [])


if __name__ == "__main__":
    unittest.main()
