# SPDX-License-Identifier: MIT
"""Runs a cluster of three shards with two servers each, to which four kinds of client write. After
each fault, tests check that the cluster has all writes that the clients logged as acknowledged."""

import os
import pathlib
import re
import selectors
import tempfile
import threading
import time
from dataclasses import dataclass

from harness import wait_until
from harness.cluster import ClusterTest
from harness.cluster_writers import (
    TAGS,
    TIMEOUT_S,
    WriterProgram,
    node_program,
    program,
    read_command,
)
from harness.network import LocalNetwork, create_network
from harness.node import MODULES
from harness.resp import Connection, encode
from harness.waiting import DEADLINE_S, pace

SHARDS = 3
# Age in seconds from which a write counts as replicated, because replicas acknowledge once a
# second.
REPLICATED_S = 2.0
# An error is caused by the machine if the machine stalled within the last HOLD_S seconds. The
# stalls of processes must sum to more than STALL_S, or one sync of the disk must take DISK_STALL_S.
STALL_S = 0.05
DISK_STALL_S = 0.1
# HOLD_S exceeds the 0.5 s for which a node may hold commands during a handover.
HOLD_S = 1
# The same limits for writers that wait TIMEOUT_S for a reply. On an idle machine, the stalls of
# TIMEOUT_HOLD_S seconds sum to 0.05 s.
TIMEOUT_HOLD_S = TIMEOUT_S + 0.5
TIMEOUT_STALL_S = 0.2
# TCP may wait this long before it repeats packets that a cut has lost.
RETRANSMISSION_S = 10
# Errors that a client may get while its shard has no leader. docs/cluster.md describes how clients
# handle them.
CONNECTION_ERRORS = re.compile(
    r"ConnectionError|TimeoutError|ConnectionResetError|ConnectionRefusedError|BrokenPipeError"
    r"|OSError|EOFError|no reply in time|Command timed out|Connection is closed|ECONNRE|EPIPE"
    r"|ETIMEDOUT|Socket closed unexpectedly|Socket timeout|Connection timeout|None of startup"
    r"|Redis Cluster cannot be connected|Failed to refresh slots cache|The client is closed"
    r"|Disconnects client"
    r"|ClusterAllFailedError|Too many Cluster redirections.*(MOVED|Connection is closed|ECONN)"
    r"|cannot pickle|commands-queue|TTL exhausted|Root nodes|None of the root nodes"
    r"|All the root nodes are unavailable"
)
CLUSTER_DOWN = re.compile(r"CLUSTERDOWN|ClusterDownError|The cluster is down")


@dataclass(frozen=True)
class Reply:
    port: int
    number: int
    sent: float
    at: float
    text: bytes  # first line of the reply; empty if the connection was closed


class Witness(threading.Thread):
    """Sends writes to all servers of one shard, and records which server acknowledges which write,
    and when. Each write has its own connection, which waits for the reply without a timeout.
    """

    PAUSE_S = 0.04
    OPEN_MAX = 300

    def __init__(self, lane, servers):
        super().__init__(daemon=True)
        self.lane = lane
        self.servers = servers
        self.replies = []
        self.number = 0
        self.is_ending = threading.Event()
        self.selector = selectors.DefaultSelector()
        self.waiting = {server.port: 0 for server in servers}
        self.start()

    def key(self, number):
        return f"{TAGS[self.lane]}:witness:{id(self)}:{number}"

    def run(self):
        turn = time.monotonic()
        while not self.is_ending.is_set():
            for server in self.servers:
                if self.waiting[server.port] < self.OPEN_MAX:
                    self.send(server)
            turn = max(turn + self.PAUSE_S, time.monotonic())
            while True:
                left = turn - time.monotonic()
                for key, _ in self.selector.select(max(0, left)):
                    self.receive(key)
                if left <= 0:
                    break
        for key in list(self.selector.get_map().values()):
            key.data[0].close()
        self.selector.close()

    def send(self, server):
        self.number += 1
        sent = time.monotonic()
        try:
            connection = Connection(server.port, host=server.host, timeout_s=0.2)
            connection.socket.sendall(encode("SET", self.key(self.number), "v"))
        except OSError:
            return
        self.waiting[server.port] += 1
        self.selector.register(
            connection.socket, selectors.EVENT_READ, (connection, server.port, self.number, sent)
        )

    def receive(self, key):
        connection, port, number, sent = key.data
        try:
            text = connection.socket.recv(4096)
        except OSError:
            text = b""
        self.replies.append(Reply(port, number, sent, time.monotonic(), text.split(b"\r\n")[0]))
        self.selector.unregister(connection.socket)
        connection.close()
        self.waiting[port] -= 1

    def acknowledged(self, server):
        return [one for one in self.replies if one.port == server.port and one.text == b"+OK"]

    def first_of(self, server, since=0.0):
        return min((one.at for one in self.acknowledged(server) if one.sent > since), default=None)

    def stop(self):
        self.is_ending.set()
        self.join(DEADLINE_S)


class Pulse(threading.Thread):
    """Measures how long this machine delays a process that is ready to run."""

    STEP_S = 0.01

    def __init__(self):
        super().__init__(daemon=True)
        self.stalls = []  # pairs (end of the stall, duration in seconds)
        self.start()

    def run(self):
        while True:
            stall_s = self.measure()
            self.stalls.append((time.monotonic(), stall_s))

    def measure(self):
        """Returns how many seconds the machine delays this thread."""
        begin = time.monotonic()
        pace(self.STEP_S)
        return time.monotonic() - begin - self.STEP_S

    def stalled_since(self, moment):
        """Returns how many seconds the machine has stalled since the time `moment`."""
        return self.stalled_between(moment, float("inf"))

    def stalled_between(self, begin, end):
        """Returns how many seconds the machine stalled between the times `begin` and `end`."""
        return sum(stall for at, stall in list(self.stalls) if begin < at <= end)

    def longest_between(self, begin, end):
        """Returns the longest stall in seconds between the times `begin` and `end`."""
        return max((stall for at, stall in list(self.stalls) if begin < at <= end), default=0.0)


class DiskPulse(Pulse):
    """Measures how long the disk takes to sync a small write.

    The clients of a shard wait for the disk, because etcd syncs its log before it names a leader.
    """

    STEP_S = 0.02

    def __init__(self, folder):
        self.file = open(pathlib.Path(folder) / "pulse", "wb", buffering=0)
        super().__init__()

    def measure(self):
        """Returns how many seconds the disk takes for a sync."""
        pace(self.STEP_S)
        begin = time.monotonic()
        self.file.seek(0)
        self.file.write(b"pulse")
        os.fdatasync(self.file.fileno())
        return time.monotonic() - begin


class ClusterLoadTest(ClusterTest):
    """A test case that starts a cluster and clients that write to it, and checks that no
    acknowledged write is lost.
    """

    shards = SHARDS

    def start_load(self, *options, timeout_ms=2500):
        """Starts three shards, three members of etcd, and writers with short timeouts."""
        options = ("--repl-diskless-sync-delay", "0", *options)
        self.start_shards(
            SHARDS, *options, members=3, network=create_network(1), timeout_ms=timeout_ms
        )
        self.start_writers(
            ("redis-py", None), ("redis-cli", None), ("redis", "redis6"), ("ioredis", "ioredis6")
        )

    def start_shards(self, shards, *options, members=1, network=None, timeout_ms=2500):
        """Starts the shards, each with a leader and a replica."""
        self.shards = shards
        self.timeout_s = timeout_ms / 1000
        self.network = network or LocalNetwork(1)
        self.addCleanup(self.network.close)
        self.options = options
        self.servers = self.start_cluster(
            shards, 1, *options, members=members, network=network, timeout_ms=timeout_ms
        )
        for server in self.servers:
            # The tests cut shard leaders and etcd members off the network, so the servers log
            # warnings.
            server.expect_log(".*")
        self.wait_for_replicas(self.servers, shards)
        self.pulse = Pulse()
        folder = tempfile.TemporaryDirectory(prefix="bloomery-pulse-")
        self.addCleanup(folder.cleanup)
        self.disk_pulse = DiskPulse(folder.name)
        # tuples (shard, begin, end): writes to the shard that were acknowledged between these times
        # may be lost
        self.unsafe = []
        self.checked = {}
        self.writers = []
        self.healed = float("-inf")  # time of the last heal()

    def start_writers(self, *kinds):
        """Starts programs that write to the cluster. `kinds` are pairs: the kind of client, and the
        folder of its Node modules. The folder is None for a Python program.
        """
        addresses = [f"{server.host}:{server.port}" for server in self.servers]
        for kind, folder in kinds:
            if folder is None:
                self.start_writer(kind, program(kind, kind, addresses))
                continue
            modules = MODULES / f"node_modules_{folder}"
            self.assertTrue(
                (modules / ".installed").exists(),
                f"{modules} is missing: run scripts/install_node_packages.sh",
            )
            self.start_writer(kind, node_program(kind, modules, kind, addresses))
        self.wait_for_writers(time.monotonic())

    def start_writer(self, name, command):
        for lane, tag in enumerate(TAGS):
            with self.leader(lane).connect() as connection:
                # At this low error rate, a lost item is practically never a false positive.
                connection.call("BF.RESERVE", f"{tag}:{name}:f", "0.0000001", "100000")
        writer = WriterProgram(name, command)
        self.addCleanup(writer.stop)
        self.writers.append(writer)
        return writer

    # The methods below find the servers by their roles.

    def shard(self, lane):
        number = lane * self.shards // len(TAGS)
        return self.topology()["shards"][f"s{number + 1}"]

    def server(self, node_id):
        return next(one for one in self.servers if one.node_id == node_id)

    def leader(self, lane):
        return self.server(self.shard(lane)["leader"])

    def replica(self, lane):
        shard = self.shard(lane)
        return self.server(next(one for one in shard["members"] if one != shard["leader"]))

    def restart(self, server):
        """Starts a killed server again, with the same port, options and data directory."""
        index = self.servers.index(server)
        new = self.start_node(
            self.etcd, index, *self.options, host=server.host, port=server.port,
            timeout_ms=int(self.timeout_s * 1000), directory=server.directory,
            prefix=self.prefix_of(server),
        )  # fmt: skip
        new.expect_log(".*")
        self.servers[index] = new
        return new

    def prefix_of(self, server):
        is_island = self.network.can_cut and server.host == self.network.addresses[0]
        return self.network.prefix(0) if is_island else ()

    def heal(self, index):
        """Ends the cut of a network namespace, and records the time for check_errors()."""
        self.network.heal(index)
        self.healed = time.monotonic()

    # The methods below wait until the writers make progress.

    def wait_for_writers(self, since, lanes=range(SHARDS)):
        """Waits until each writer has, in each lane (shard), an acknowledged write that was sent
        after `since`. Returns for each writer the seconds from `since` until the writer had such a
        write in every lane.
        """
        def last():
            return {(w.name, lane): w.last_sent(lane) for w in self.writers for lane in lanes}

        wait_until(
            lambda: min(last().values()) > since,
            lambda: f"a write of each; late: {[k for k, v in last().items() if v <= since]}; "
            f"{[(w.name, w.errors[-3:]) for w in self.writers]}",
        )  # fmt: skip
        return {
            writer.name: max(writer.first_after(lane, since) - since for lane in lanes)
            for writer in self.writers
        }

    def wait_until_whole(self):
        """Waits until all servers are in sync, and each writer has a new acknowledged write in each
        shard.
        """
        self.wait_for_replicas(self.servers, self.shards)
        for lane in range(SHARDS):
            self.wait_for_state(self.leader(lane))
        self.wait_for_writers(time.monotonic())

    def watch(self, lane):
        """Starts a Witness, which records the acknowledgements of the shard's servers. Returns the
        Witness, the leader and the replica.
        """
        leader, replica = self.leader(lane), self.replica(lane)
        witness = Witness(lane, [leader, replica])
        self.addCleanup(witness.stop)
        begin = time.monotonic()
        wait_until(lambda: witness.first_of(leader, begin), what="the leader acknowledges")
        return witness, leader, replica

    def wait_for_takeover(self, witness, new, since):
        """Waits for the new leader's first acknowledgement. Returns the seconds from `since` to
        this acknowledgement.
        """
        wait_until(lambda: witness.first_of(new), f"{new.port} takes over")
        taken = witness.first_of(new)
        self.unsafe.append((witness.lane, since - REPLICATED_S, taken))
        return taken - since

    # The methods below check the guarantees of the cluster.

    def check_order(self, witness, old, new):
        """Checks that the old leader acknowledged nothing after the new leader's first
        acknowledgement.
        """
        first = witness.first_of(new)
        late = [one for one in witness.acknowledged(old) if one.at > first]
        self.assertEqual(late, [], f"the new leader acknowledged first at {first}")

    def check_present(self):
        """Checks that the cluster has all writes that were acknowledged since the previous check.
        Skips the writes that a leader may not have replicated before it died. Returns the number of
        writes that were acknowledged since the previous check.
        """
        total = 0
        for lane in range(SHARDS):
            with self.leader(lane).connect() as connection:
                for writer in self.writers:
                    known = self.checked.setdefault((writer.name, lane), 0)
                    acks = [ack for ack in list(writer.acknowledged) if ack.lane == lane]
                    self.checked[writer.name, lane] = len(acks)
                    self.check_items(connection, writer, self.safe(acks[known:]))
                    total += len(acks) - known
        return total

    def safe(self, acks):
        def is_unsafe(ack):
            return any(
                lane == ack.lane and begin <= ack.at < end for lane, begin, end in self.unsafe
            )

        return [ack for ack in acks if not is_unsafe(ack)]

    def check_items(self, connection, writer, acks):
        missing = []
        for begin in range(0, len(acks), 500):
            some = acks[begin : begin + 500]
            reads = [read_command(writer.name, ack.lane, ack.number) for ack in some]
            replies = connection.pipeline([words for words, _ in reads])
            missing += [
                ack for ack, (_, wanted), (got, _) in zip(some, reads, replies) if got != wanted
            ]
        self.assertEqual(missing, [], f"{writer.name} lost {len(missing)} of {len(acks)}")

    def check_all(self):
        self.checked.clear()
        print(f"{self.check_present()} acknowledged writes were looked up", flush=True)

    def is_of_the_machine(self, when, hold_s=HOLD_S, stall_s=STALL_S):
        """Returns whether the machine stalled shortly before the time `when` of an error."""
        period = (when - hold_s, when + STALL_S)
        return (
            self.pulse.stalled_between(*period) > stall_s
            or self.disk_pulse.longest_between(*period) > DISK_STALL_S
        )

    def check_errors(self, since, lanes, *, may_be_down=False):
        """Checks the errors that the writers got after `since`. Writes to the shards `lanes` may
        fail only by lost connections and, if `may_be_down` is set, by CLUSTERDOWN. Writes to other
        shards must not fail. The client ioredis is an exception. It does not know which argument of
        BF.ADD is the key. So it may send a command for any shard to a node that is down.

        If `lanes` is empty, no error is expected. A lost connection or CLUSTERDOWN is then accepted
        only if the machine stalled before the error. A lost connection of ioredis is also accepted
        after a cut, because TCP needs time to repeat the lost packets.
        """
        def is_accepted(name, lane, when, text):
            is_lost = CONNECTION_ERRORS.search(text)
            is_down = CLUSTER_DOWN.search(text)
            if name == "ioredis" and is_lost and when < self.healed + RETRANSMISSION_S:
                return True
            if not lanes:
                is_due_to_stall = self.is_of_the_machine(when, TIMEOUT_HOLD_S, TIMEOUT_STALL_S)
                return (is_lost or is_down) and is_due_to_stall
            is_of_lanes = lane in lanes or name == "ioredis"
            return is_of_lanes and (is_lost or may_be_down and is_down)

        found = [
            (writer.name, lane, when, text)
            for writer in self.writers
            for lane, when, text in list(writer.errors)
            if when > since
        ]
        wrong = [one for one in found if not is_accepted(*one)]
        self.assertEqual(
            wrong, [], f"{len(wrong)} of {len(found)} errors since {since}; {self.cluster_logs()}"
        )

    def cluster_logs(self):
        """Returns the servers' last log lines about the cluster."""
        return {
            server.port: [line for line in server.log if "Cluster:" in line][-8:]
            for server in self.servers
        }
