# SPDX-License-Identifier: MIT
"""Defines the events of the mode matrix, such as a restart or a promotion. Each event fills a
server with data before it happens, and checks all data afterwards.

Each event is an object of class Event. Its method run(run) performs the event. At the end, this
method must call run.end(), which checks that a server still accepts writes.
"""

import os
import re
import shutil
import signal

from harness import free_port, wait_until
from harness.cutting_proxy import CuttingProxy
from harness.info import info
from harness.mode_matrix.cell_run import KEY_PREFIX, Client

LOG = ("--appendonly", "yes")
BALLAST = f"{KEY_PREFIX}:ballast"


def suspend_child(node, command, end):
    """Sends a command such as BGSAVE, which forks a child process that saves, and suspends the
    child. Repeats this if the child ended before it was suspended. `end` is a part of the log line
    that the server writes when a child has ended. Returns the process id of the suspended child.
    """

    def ended():
        return sum(end in line for line in node.server.log)

    while True:
        before = ended()
        node.operator.run(command)
        # The server may reply to the command before it forks the child.
        wait_until(lambda: node.server.children() or ended() > before, f"the child of {command}")
        if stopped := node.server.suspend_children():
            return stopped[0]
        wait_until(lambda: ended() > before, f"the end of {command}")
        # The server logs the end of the child a moment before it accepts the next command.
        wait_until(lambda: not saves(node), f"the end of {command} in INFO")


def saves(node):
    """Returns whether INFO shows a snapshot or a rewrite in progress."""
    fields = info(node.operator, "persistence")
    return "1" in (fields["rdb_bgsave_in_progress"], fields["aof_rewrite_in_progress"])


class Event:
    options = ()  # The options of every server of the cell.
    is_in_cluster = False  # If true, the cell uses only database 0, because a cluster has no other.
    expected_log = ()  # Patterns of the warnings that the event causes.

    def run(self, run):
        raise NotImplementedError


class RestartFromLog(Event):
    options = LOG

    def run(self, run):
        directory = run.directory()
        node = run.start(directory)
        run.fill(node)
        expected = run.contents(node)
        run.stop(node)
        node = run.start(directory)
        run.check(node, expected)
        run.end(node)


class RestartFromSnapshot(Event):
    """The server is killed, and restarts from a snapshot alone."""

    def run(self, run):
        directory = run.directory()
        node = run.start(directory)
        run.fill(node)
        expected = run.contents(node)
        self.save(run, node)
        node.server.crash()
        node = run.start(directory)
        run.check(node, expected)
        run.end(node)

    def save(self, run, node):
        command = run.rng.choice(["SAVE", "BGSAVE"])
        node.operator.run(command)
        wait_until(
            lambda: info(node.operator, "persistence")["rdb_bgsave_in_progress"] == "0", command
        )


class SnapshotDuringWrites(Event):
    """Clients write while a child process saves. The snapshot must contain the data at the time of
    the fork.
    """

    KEY_SAVE_DELAY_US = 2000
    SAVED = "Background saving terminated with success"

    def run(self, run):
        directory = run.directory()
        node = run.start(directory)
        run.fill(node)
        expected = run.contents(node)
        node.operator.run("CONFIG", "SET", "rdb-key-save-delay", self.KEY_SAVE_DELAY_US)
        child = suspend_child(node, "BGSAVE", self.SAVED)
        # The simulated clock does not advance, so that nothing in the snapshot expires.
        run.model.write(node.app)
        self.make_and_delete(node)
        os.kill(child, signal.SIGCONT)
        wait_until(lambda: info(node.operator, "persistence")["rdb_bgsave_in_progress"] == "0")
        self.check_snapshot(run, directory, expected)
        run.end(node)

    def make_and_delete(self, node):
        """Creates and deletes filters after the fork, while the child process is suspended."""
        for _ in range(3):
            node.operator.run("BF.RESERVE", BALLAST, "0.01", 10**5)
            node.operator.run("BF.ADD", BALLAST, "item")
            node.operator.run("DEL", BALLAST)

    def check_snapshot(self, run, directory, expected):
        copy = run.directory()
        shutil.copy(directory / "dump.rdb", copy)
        node = run.start(copy)
        run.configuration.compare(run.test, expected, run.contents(node))


class KillDuringRewrite(Event):
    options = LOG
    expected_log = (r"is torn: .* cut off at offset", r"no sound checksum line")
    # A bitmap of this size takes the child process long to save. The append log stays short,
    # because one SETBIT creates the bitmap.
    BALLAST_BITS = 128 << 20
    REWRITTEN = "rewriting finished successfully"

    def run(self, run):
        directory = run.directory()
        node = run.start(directory)
        run.fill(node)
        node.operator.run("SETBIT", BALLAST, self.BALLAST_BITS, 1)
        suspend_child(node, "BGREWRITEAOF", self.REWRITTEN)
        run.write(node)
        expected = run.contents(node)
        node.server.crash()
        node = run.start(directory)
        run.check(node, expected)
        run.end(node)


class SigtermWhileLoading(Event):
    options = LOG
    BALLAST_BYTES = 2 << 20
    LOADED = "DB loaded from"

    def run(self, run):
        directory = run.directory()
        node = run.start(directory)
        run.fill(node)
        node.operator.run("SETRANGE", BALLAST, self.BALLAST_BYTES, "end")
        commands = 50
        while True:
            self.lengthen_log(node, commands)
            expected = run.contents(node)
            run.stop(node)
            is_interrupted = self.end_a_start(run, directory)
            node = run.start(directory)
            run.check(node, expected)
            if is_interrupted:
                return run.end(node)
            commands *= 2

    def lengthen_log(self, node, commands):
        """Makes the log longer by commands that have few bytes but take long to replay."""
        for _ in range(commands):
            node.operator.run("BITOP", "NOT", BALLAST, BALLAST)

    def end_a_start(self, run, directory):
        """Starts a server, and sends SIGTERM while the server loads its log. Returns whether the
        server ended before it had loaded all of the log.
        """
        process = run.launch(directory)
        run.test.addCleanup(process.kill)
        process.wait_for_log(r"Loading .*\.incr\.aof")
        process.process.send_signal(signal.SIGTERM)
        run.test.assertEqual(process.wait_for_exit(), 0)
        run.test.assertEqual(process.unexpected_lines(), [])
        return not any(self.LOADED in line for line in process.log)


class Replicated(Event):
    expected_log = (r"Replica .* is disconnected", r"A snapshot for replicas failed")

    def start_leader(self, run):
        leader = run.start(run.directory())
        run.fill(leader)
        return leader

    def start_replica(self, run, leader, port):
        """Starts a replica that syncs through `port`, the port of the leader or of a proxy.
        Writes to the leader during the sync.
        """
        replica = run.start_replica(run.directory())
        run.test.follow(replica.operator, port)
        run.write(leader)
        run.test.wait_for_link(replica.operator)
        return replica


class FullSync(Replicated):
    options = LOG

    def run(self, run):
        leader = self.start_leader(run)
        replica = self.start_replica(run, leader, leader.port)
        run.write(leader)
        run.check_replica(leader, replica)
        run.end(leader)
        run.check_replica(leader, replica)


class PartialResync(Replicated):
    options = ("--repl-backlog-size", "64mb")

    def run(self, run):
        leader = self.start_leader(run)
        link = CuttingProxy(leader.port)
        run.test.addCleanup(link.close)
        replica = self.start_replica(run, leader, link.port)
        run.check_replica(leader, replica)
        link.is_refusing = True
        link.cut_all()
        run.write(leader)
        run.write(leader)
        link.is_refusing = False
        run.check_replica(leader, replica)
        stats = info(leader.operator, "stats")
        run.test.assertGreaterEqual(int(stats["sync_partial_ok"]), 1)
        run.test.assertEqual(stats["sync_full"], "1")
        run.end(leader)
        run.check_replica(leader, replica)


class RestartedReplica(Replicated):
    """After a restart, a killed replica continues its leader's stream from the position in its
    append log.
    """

    options = (*LOG, "--repl-backlog-size", "64mb")
    LAST_POSITION = re.compile(rb"#bloomery-pos:[^\r]*\r\n#bloomery-crc64:[0-9a-f]{16}\r\n$")

    def run(self, run):
        directory = run.directory()
        leader = self.start_leader(run)
        configuration = run.configuration.of_replicas
        replica = run.start(directory, configuration=configuration)
        run.follow(replica, leader.port)
        run.write(leader)
        run.check_replica(leader, replica)
        wait_until(lambda: self.has_position(directory), "the last command has a position")
        replica.server.crash()
        run.write(leader)
        replica = run.start(
            directory, "--replicaof", f"127.0.0.1 {leader.port}", configuration=configuration
        )
        run.test.wait_for_link(replica.operator)
        run.check_replica(leader, replica)
        stats = info(leader.operator, "stats")
        run.test.assertEqual((stats["sync_full"], stats["sync_partial_ok"]), ("1", "1"))
        run.end(leader)
        run.check_replica(leader, replica)

    def has_position(self, directory):
        logs = (directory / "appendonlydir").glob("*.incr.aof")
        newest = max(logs, key=lambda path: path.stat().st_mtime_ns)
        return self.LAST_POSITION.search(newest.read_bytes())


class Promotion(Replicated):
    """The leader is killed and its replica is promoted. The former leader returns as a replica of
    the new leader.
    """

    options = LOG

    def run(self, run):
        directory = run.directory()
        first = run.start(directory)
        run.fill(first)
        second = run.start_replica(run.directory())
        run.follow(second, first.port)
        run.write(first)
        run.check_replica(first, second)
        first.server.crash()
        run.test.assertEqual(second.operator.run("REPLICAOF", "NO", "ONE"), b"OK")
        run.check(second)
        run.write(second)
        first = run.start(directory)
        if run.refusal:
            reply = first.operator.call("REPLICAOF", "127.0.0.1", second.port)
            run.test.assertRegex(str(reply), run.refusal)
        else:
            run.follow(first, second.port)
            run.check_replica(second, first)
        run.end(second)


class RedisReplica(Replicated):
    """The replica is Debian's redis-server, which has no module for filters."""

    options = ("--replica-foreign", "strings")
    expected_log = (*Replicated.expected_log, r"Replica .* is refused")

    def run(self, run):
        leader = self.start_leader(run)
        port = free_port()
        redis = run.test.start_redis(
            *run.configuration.redis_options(run.test, port), *run.access.redis_options,
            "--replicaof", f"127.0.0.1 {leader.port}", port=port,
        )  # fmt: skip
        redis.expect_log("")
        if run.refusal:
            leader.server.wait_for_log(run.refusal)
            run.write(leader)
            run.test.assertEqual(info(leader.operator)["connected_slaves"], "0")
        else:
            self.compare(run, leader, port)
        run.end(leader)

    def compare(self, run, leader, port):
        connection = run.configuration.connect(run.test, port)
        run.test.addCleanup(connection.close)
        replica = Client([connection], {})
        replica.run("SELECT", run.configuration.database)
        run.write(leader)
        run.test.wait_for_link(replica)
        for _ in range(2):
            run.write(leader)
            run.contents(leader)  # waits until the leader has deleted expired keys
            run.test.wait_until_equal_offsets(leader.operator, replica)
            run.model.check(replica)


class Handover(Replicated):
    """FAILOVER swaps the leader and its replica."""

    options = LOG

    def run(self, run):
        leader = self.start_leader(run)
        replica = self.start_replica(run, leader, leader.port)
        run.check_replica(leader, replica)
        command = ("FAILOVER", "TO", "127.0.0.1", replica.port)
        if run.refusal:
            run.test.assertRegex(str(leader.operator.call(*command)), run.refusal)
            return run.end(leader)
        # The leader counts a replica as online from the replica's first acknowledgement on.
        wait_until(lambda: "state=online" in info(leader.operator)["slave0"], "an online replica")
        run.test.assertEqual(leader.operator.run(*command), b"OK")
        wait_until(lambda: info(replica.operator)["role"] == "master", "the handover")
        run.test.wait_for_link(leader.operator)
        run.check_replica(replica, leader)
        run.end(replica)
        run.check_replica(replica, leader)


class Transfer(Event):
    """Copies each key from one server to another."""

    def run(self, run):
        source, target = run.start(run.directory()), run.start(run.directory())
        run.fill(source)
        keys = run.model.keys()
        for key in keys:
            self.transfer(source.operator, target.operator, key)
        values = [node.operator.run("DEBUG", "DIGEST-VALUE", *keys) for node in (source, target)]
        run.test.assertEqual(*values)
        run.end(target)

    def transfer(self, source, target, key):
        raise NotImplementedError


class DumpAndRestore(Transfer):
    def transfer(self, source, target, key):
        payload, end = source.run("DUMP", key), source.run("PEXPIRETIME", key)
        target.run("RESTORE", key, max(0, end), payload, "ABSTTL")


class LoadChunks(Transfer):
    def transfer(self, source, target, key):
        iterator = 0
        while True:
            iterator, data = source.run("BF.SCANDUMP", key, iterator)
            if not iterator:
                break
            target.run("BF.LOADCHUNK", key, iterator, data)


class Migrate(Event):
    """MIGRATE moves all keys to a second server."""

    TIMEOUT_MS = 60_000

    def run(self, run):
        source, target = run.start(run.directory()), run.start(run.directory())
        run.fill(source)
        keys = run.model.keys()
        expected = source.operator.run("DEBUG", "DIGEST-VALUE", *keys)
        command = ("MIGRATE", "127.0.0.1", target.port, "", run.configuration.database,
                   self.TIMEOUT_MS, *run.access.migrate_words, "KEYS", *keys)  # fmt: skip
        if run.refusal:
            run.test.assertRegex(str(source.operator.call(*command)), run.refusal)
            return run.end(source)
        run.test.assertEqual(source.operator.run(*command), b"OK")
        run.test.assertEqual(source.operator.run("EXISTS", *keys), 0)
        run.test.assertEqual(target.operator.run("DEBUG", "DIGEST-VALUE", *keys), expected)
        run.end(target)


EVENTS = {
    "restart_from_log": RestartFromLog(),
    "restart_from_snapshot": RestartFromSnapshot(),
    "snapshot_during_writes": SnapshotDuringWrites(),
    "kill_during_rewrite": KillDuringRewrite(),
    "sigterm_while_loading": SigtermWhileLoading(),
    "full_sync": FullSync(),
    "partial_resync": PartialResync(),
    "restarted_replica": RestartedReplica(),
    "promotion": Promotion(),
    "handover": Handover(),
    "redis_replica": RedisReplica(),
    "dump_and_restore": DumpAndRestore(),
    "load_chunks": LoadChunks(),
    "migrate": Migrate(),
}
