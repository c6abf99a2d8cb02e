#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Replicas of leaders that only act: files of RedisBloom and valkey-bloom as full syncs and their
logs as streams, and leaders that lie, stutter and stop at odd places."""

import pathlib
import random
import re
import shutil
import tempfile
import time
import unittest

from harness import seed_from_environment, wait_until
from replication_harness import ReplicaTest, info
from resp import ErrorReply, encode
from scripted_leader import REPLICATION_ID, ScriptedLeader
from vector_checks import VECTORS, VectorChecks, expected_filters

MARK = b"0123456789abcdef" * 2 + b"MARK*3$8"
VENDORS = ("redisbloom", "valkey-bloom")
# What RedisBloom writes.
SMALL = (VECTORS / "redisbloom" / "dump.rdb").read_bytes()
# No key and no check sum.
EMPTY = b"REDIS0010\xff" + bytes(8)


class ScriptedLeaderTest(VectorChecks, ReplicaTest):
    def lead(self, script):
        leader = ScriptedLeader(script)
        self.addCleanup(leader.close)
        self.addCleanup(lambda: self.assertEqual(leader.problems, []))
        return leader

    def start_replica(self, *options):
        self.server = self.start_server(*options)
        return self.connect(self.server)

    def follow_script(self, script, *options):
        leader = self.lead(script)
        replica = self.start_replica(*options)
        self.follow(replica, leader.port)
        self.wait_for_link(replica)
        return leader, replica

    def wait_for_ack(self, leader, offset):
        wait_until(lambda: offset in leader.links[-1].acks, 10, f"an ACK of {offset}")

    def check_promoted(self, replica, vendor):
        """Filters go on growing in their layout when this server has become their leader."""
        self.assertEqual(replica.call("REPLICAOF", "NO", "ONE"), b"OK")
        replica.call("SELECT", "0")
        for number in range(200, 1000):
            replica.call("BF.ADD", "scaled", f"scaled:{number}")
        text = str(replica.call("BF.DEBUG", "scaled"))
        self.assertNotIsInstance(replica.call("BF.INFO", "scaled"), ErrorReply, text)
        found = replica.call("BF.MEXISTS", "scaled", *[f"scaled:{n}" for n in range(1000)])
        self.assertEqual(found, [1] * 1000)
        self.assertGreater(replica.call("BF.INFO", "scaled", "FILTERS")[0], 5)

    def test_snapshots_of_others(self):
        for vendor in VENDORS:
            for snapshot in ("dump.rdb", "dump-uncompressed.rdb", "dump-nochecksum.rdb"):
                for mark in (None, MARK):
                    with self.subTest(vendor=vendor, snapshot=snapshot, mark=mark):
                        data = (VECTORS / vendor / snapshot).read_bytes()
                        leader, replica = self.follow_script(
                            lambda link, data=data, mark=mark: link.full_resync(data, 17, mark)
                        )
                        self.check_all(replica, vendor)
                        self.wait_for_ack(leader, 17)
                        self.check_promoted(replica, vendor)

    def test_a_log_whose_base_is_a_snapshot_of_others(self):
        """It is loaded by their rules, and what follows it counts as effects of ours."""
        for vendor in VENDORS:
            with self.subTest(vendor=vendor):
                directory = tempfile.mkdtemp(prefix="bloomery-scripted-")
                self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
                options = ("--dir", directory, "--appendonly", "yes",
                           "--enable-debug-command", "yes")  # fmt: skip
                data = (VECTORS / vendor / "dump.rdb").read_bytes()
                _, replica = self.follow_script(
                    lambda link, data=data: link.full_resync(data, 17), *options
                )
                self.check_promoted(replica, vendor)
                digest = replica.call("DEBUG", "DIGEST")
                self.assertEqual(info(replica, "persistence")["aof_rewrites"], "0")
                self.server.crash()
                replica = self.start_replica(*options)
                self.assertEqual(replica.call("DEBUG", "DIGEST"), digest)
                self.check_all(replica, vendor, changed=("scaled",))

    def test_streams_of_others(self):
        """What a log without a preamble holds is what the server sent to its replicas."""
        for vendor in VENDORS:
            with self.subTest(vendor=vendor):
                folder = VECTORS / vendor / "aof-preamble-no-live" / "appendonlydir"
                stream = (folder / "appendonly.aof.1.incr.aof").read_bytes()
                self.assertGreater(len(stream), 1000)

                def script(link, stream=stream):
                    link.full_resync(EMPTY, 100)
                    link.send(stream)

                leader, replica = self.follow_script(script)
                self.wait_for_ack(leader, 100 + len(stream))
                self.check_all(replica, vendor)
                self.check_promoted(replica, vendor)

    def test_a_snapshot_and_the_stream_behind_it(self):
        for vendor in VENDORS:
            with self.subTest(vendor=vendor):
                folder = VECTORS / vendor / "aof-preamble-yes-rewritten" / "appendonlydir"
                snapshot = next(folder.glob("*.base.rdb")).read_bytes()
                stream = next(folder.glob("*.incr.aof")).read_bytes()

                def script(link, snapshot=snapshot, stream=stream):
                    link.full_resync(snapshot, 0, MARK)
                    for at in range(0, len(stream), 7):
                        link.send(stream[at : at + 7])

                leader, replica = self.follow_script(script)
                self.wait_for_ack(leader, len(stream))
                self.check_all(replica, vendor, changed=("tiny", "scaled"))
                replica.call("SELECT", "0")
                self.assertEqual(replica.call("BF.EXISTS", "tiny", "item:50"), 1)
                self.assertEqual(replica.call("BF.EXISTS", "scaled", "scaled:200"), 1)
                self.assertEqual(replica.call("GET", "after"), b"rewrite")

    def test_a_load_that_valkey_sends_as_an_insertion(self):
        """valkey-bloom replicates BF.LOAD as if the whole payload were one item."""
        payload = (VECTORS / "valkey-bloom" / "load" / "tiny.bin").read_bytes()
        seed = payload[51:83]  # behind the object's head, the blob's version, size and hash count
        creation = ("CAPACITY", "100", "ERROR", "0.01", "TIGHTENING", "0.5", "SEED", seed,
                    "EXPANSION", "2", "ITEMS")  # fmt: skip
        stream = (("SELECT", "0"), ("BF.INSERT", "tiny", *creation, payload),
                  ("BF.INSERT", "plain", *creation, "item:7"))  # fmt: skip
        size = sum(len(encode(*words)) for words in stream)

        def script(link):
            link.full_resync(EMPTY)
            link.send_commands(*stream)

        leader, replica = self.follow_script(script, "--enable-debug-command", "yes")
        self.wait_for_ack(leader, size)
        figures, absent = expected_filters("valkey-bloom")["tiny"]
        self.check_filter(replica, "tiny", figures, absent)
        items = [f"item:{number}" for number in range(50)]
        self.assertEqual(replica.call("BF.MEXISTS", "tiny", *items), [1] * 50)
        self.assertEqual(replica.call("BF.CARD", "plain"), 1)
        self.assertEqual(replica.call("REPLICAOF", "NO", "ONE"), b"OK")
        self.assertEqual(replica.call("DEBUG", "RELOAD"), b"OK")
        self.check_filter(replica, "tiny", figures, absent)
        self.assertEqual(replica.call("BF.ADD", "tiny", "item:50"), 1)
        self.assertEqual(replica.call("BF.CARD", "tiny"), 51)

    def test_foreign_types_are_refused_before_anything_is_lost(self):
        mixed = (VECTORS / "redisbloom" / "mixed-types.rdb").read_bytes()
        leader = self.lead(lambda link: link.full_resync(mixed))
        replica = self.start_replica()
        replica.call("SET", "old", "stays")
        self.follow(replica, leader.port)
        self.server.wait_for_log("snapshot is not taken.*no values of type")
        self.assertEqual(replica.call("GET", "old"), b"stays")
        self.server.expect_log("Skipped .* of type")
        replica.call("CONFIG", "SET", "rdb-foreign-types", "skip")
        self.wait_for_link(replica)
        self.assertEqual(replica.call("BF.EXISTS", "g", "b"), 1)
        self.assertEqual(replica.call("EXISTS", "old"), 0)

    def test_foreign_commands(self):
        stream = (("SELECT", "0"), ("SET", "a", "1"), ("HSET", "h", "f", "v"),
                  ("MULTI",), ("INCR", "a"), ("RPUSH", "l", "x"), ("EXEC",),
                  ("PUBLISH", "channel", "text"), ("SET", "b", "2"))  # fmt: skip
        size = sum(len(encode(*words)) for words in stream)

        def script(link):
            start = 0
            if link.asked[1] == REPLICATION_ID.encode():
                start = int(link.asked[2]) - 1
                link.send(b"+CONTINUE\r\n")
            else:
                link.full_resync(EMPTY)
            link.send(b"".join(encode(*words) for words in stream)[start:])

        leader = self.lead(script)
        replica = self.start_replica()
        self.follow(replica, leader.port)
        self.server.wait_for_log("sends 'HSET', which this server does not have")
        self.assertEqual(replica.call("GET", "a"), b"1")
        replica.call("CONFIG", "SET", "rdb-foreign-types", "skip")
        self.wait_for_ack(leader, size)
        self.assertEqual(replica.call("GET", "a"), b"2", "the transaction went on without RPUSH")
        self.assertEqual(replica.call("GET", "b"), b"2")
        self.assertEqual(sum(link.asked[1] != REPLICATION_ID.encode() for link in leader.links), 1)

    def test_a_refused_command_slows_the_link_down(self):
        """What the stream stops at stays there: each attempt costs the leader a PSYNC."""
        poison = encode("LPUSH", "list", "x")
        attempts = []

        def script(link):
            attempts.append(time.monotonic())
            if link.asked[1] != REPLICATION_ID.encode():
                link.full_resync(EMPTY)
            else:
                link.send(b"+CONTINUE\r\n")
            link.send(poison)

        leader = self.lead(script)
        replica = self.start_replica()
        self.follow(replica, leader.port)
        wait_until(lambda: len(attempts) >= 7, 30, "seven attempts")
        self.assertGreater(attempts[6] - attempts[0], 1.2, "each pause is twice the one before")
        wait_until(lambda: info(replica)["master_link_status"] == "down")
        reason = info(replica)["master_link_down_reason"]
        self.assertIn("'LPUSH', which this server does not have", reason)
        self.assertIn("rdb-foreign-types skip", reason)
        log = "\n".join(self.server.log)
        self.assertEqual(log.count("The link to the leader is down"), 1, log)
        self.assertLessEqual(log.count("The leader goes on"), 1, log)
        replica.call("CONFIG", "SET", "rdb-foreign-types", "skip")
        self.wait_for_ack(leader, len(poison))
        self.assertNotIn("master_link_down_reason", info(replica))
        self.server.wait_for_log("The link to the leader works again after")

    def test_errors_are_logged_and_counted(self):
        stream = (("SET", "a", "text"), ("INCR", "a"), ("INCR", "a"), ("SET", "b", "1"))
        size = sum(len(encode(*words)) for words in stream)

        def script(link):
            link.full_resync(EMPTY)
            link.send_commands(*stream)

        leader, replica = self.follow_script(script)
        self.server.expect_log("A command of the leader failed: 'INCR'")
        self.wait_for_ack(leader, size)
        self.assertEqual(replica.call("GET", "b"), b"1")
        self.assertEqual(info(replica, "stats")["unexpected_error_replies"], "2")

    def test_a_leader_changes_data_and_nothing_else(self):
        stream = (("SHUTDOWN", "NOSAVE"), ("CONFIG", "SET", "maxclients", "1"),
                  ("REPLICAOF", "NO", "ONE"), ("CLIENT", "REPLY", "OFF"), ("WAIT", "1", "0"),
                  ("PSYNC", "?", "-1"), ("SET", "a", "1"))  # fmt: skip

        def script(link):
            link.full_resync(EMPTY)
            link.send_commands(*stream)

        leader, replica = self.follow_script(script)
        self.server.expect_log("A command of the leader failed")
        self.wait_for_ack(leader, sum(len(encode(*words)) for words in stream))
        self.assertEqual(replica.call("GET", "a"), b"1")
        self.assertEqual(info(replica)["role"], "slave")
        self.assertEqual(replica.call("CONFIG", "GET", "maxclients")[1], b"10000")
        self.assertEqual(info(replica, "stats")["unexpected_error_replies"], "6")

    def test_a_transaction_is_seen_whole(self):
        def script(link):
            link.full_resync(EMPTY)
            link.send_commands(("SELECT", "0"), ("MULTI",), ("SET", "a", "1"))
            time.sleep(0.5)
            link.send_commands(("SET", "b", "1"))
            time.sleep(0.5)
            link.send_commands(("EXEC",))

        leader, replica = self.follow_script(script)
        deadline = time.monotonic() + 10
        while (values := replica.call("MGET", "a", "b")) != [b"1", b"1"]:
            self.assertEqual(values, [None, None])
            self.assertLess(time.monotonic(), deadline)
        wait_until(lambda: leader.links[0].acks)
        self.assertEqual(leader.links[0].acks[0], 0)

    def test_getack_is_answered_with_the_offset_before_it(self):
        def script(link):
            link.full_resync(EMPTY, 1000)
            link.send_commands(("SET", "a", "1"), ("REPLCONF", "GETACK", "*"), ("PING",))

        leader, replica = self.follow_script(script)
        before = 1000 + len(encode("SET", "a", "1"))
        self.wait_for_ack(leader, before)
        self.wait_for_ack(leader, before + 37 + len(encode("PING")))

    def test_sub_replicas_get_the_identical_bytes(self):
        data = b"".join(encode("SET", f"k{number}", "v" * number) for number in range(100))

        def script(link):
            link.full_resync(EMPTY, 500)
            time.sleep(1)
            link.send(data)

        leader, replica = self.follow_script(script)
        self.wait_for_ack(leader, 500 + len(data))
        fields = info(replica)
        self.assertEqual(fields["master_replid"], REPLICATION_ID)
        self.assertEqual(fields["master_repl_offset"], str(500 + len(data)))
        self.assertEqual(fields["repl_backlog_first_byte_offset"], "501")
        self.assertEqual(fields["repl_backlog_histlen"], str(len(data)))

    def test_lies_lose_nothing(self):
        """Each of them ends the link; the old data stays, whole, and the server lives."""
        sound = SMALL
        cut = sound[: len(sound) // 2]
        flipped = bytearray(sound)
        flipped[len(sound) // 3] ^= 16
        full = b"+FULLRESYNC %b 0\r\n" % REPLICATION_ID.encode()
        lies = [
            b"-ERR no\r\n$5\r\nhello", b"+CONTINUE\r\n", b"+CONTINUE x\r\n", b"+OK\r\n",
            b"+FULLRESYNC\r\n", b"+FULLRESYNC a 1\r\n",
            b"+FULLRESYNC %b 99999999999999999999\r\n" % REPLICATION_ID.encode(),
            b"\0" * 100_000, b"\n" * 1000 + b"x" * 10_000,
            full + b"$-1\r\n", full + b"$99999999999999999999\r\n", full + b"$x\r\n",
            full + b"-ERR the save failed\r\n", full + b"$EOF:short\r\n",
            full + b"$0\r\n", full + b"$5\r\nREDIS",
            full + b"$%d\r\n" % len(cut) + cut,
            full + b"$%d\r\n" % len(flipped) + bytes(flipped),
            full + b"$%d\r\n" % (len(sound) + 1) + sound + b"x",
            full + b"$EOF:" + MARK + b"\r\n" + cut + MARK,
            full + b"$EOF:" + MARK + b"\r\n" + MARK,
            full + b"$9000000000000000000\r\n" + sound,
        ]  # fmt: skip
        left = list(lies)

        def script(link):
            if not left:
                return link.full_resync(EMPTY)
            link.send(left.pop())
            time.sleep(0.05)
            link.close()
            return None

        leader = self.lead(script)
        replica = self.start_replica()
        replica.call("BF.ADD", "old", "item")
        self.follow(replica, leader.port)
        while left:
            self.assertEqual(replica.call("BF.EXISTS", "old", "item"), 1)
            # Between two attempts; the same leader once more, so that no pause is waited for.
            if replica.call("ROLE")[3] == b"connect":
                replica.call("REPLICAOF", "127.0.0.1", leader.port)
        self.wait_for_link(replica)
        self.assertEqual(replica.call("DBSIZE"), 0)
        self.assertEqual(list(pathlib.Path(self.server.directory).glob("temp-*")), [])

    def test_an_end_mark_that_never_comes(self):
        def script(link):
            if len(leader.links) > 1:
                return link.full_resync(EMPTY)
            link.send(b"+FULLRESYNC %b 0\r\n$EOF:%b\r\n" % (REPLICATION_ID.encode(), MARK))
            for _ in range(300):
                link.send(MARK[:39] * 7000)
            return None

        leader = self.lead(script)
        replica = self.start_replica("--repl-timeout", "2")
        replica.call("SET", "old", "1")
        before = self.server.resident_bytes()
        self.follow(replica, leader.port)
        wait_until(lambda: info(replica)["master_sync_in_progress"] == "1")
        wait_until(
            lambda: int(info(replica).get("master_sync_read_bytes", 0)) > 60_000_000, 30, "80 MB"
        )
        self.assertLess(self.server.resident_bytes() - before, 64 << 20)
        self.assertEqual(replica.call("GET", "old"), b"1")
        self.wait_for_link(replica)
        self.assertEqual(list(pathlib.Path(self.server.directory).glob("temp-*")), [])

    def test_damaged_streams(self):
        """Random damage behind a sound snapshot: no crash, and the next full sync heals all."""
        seed = seed_from_environment()
        chance = random.Random(seed)
        rounds = 60
        stream = b"".join(
            [encode("SELECT", "0"), encode("MULTI"), encode("SET", "a", "x" * 50), encode("EXEC")]
            + [encode("BF.ADD", "f", f"item{number}") for number in range(20)]
            + [encode("SETBIT", "b", number * 7, 1) for number in range(20)]
        )

        def damaged():
            data = bytearray(stream)
            for _ in range(chance.randrange(1, 5)):
                at = chance.randrange(len(data))
                kind = chance.randrange(3)
                if kind == 0:
                    data[at] = chance.randrange(256)
                elif kind == 1:
                    del data[at : at + chance.randrange(30)]
                else:
                    data[at:at] = chance.choice([b"*3\r\n", b"$99999999\r\n", b"\r\n", b"EXEC"])
            return bytes(data)

        def script(link):
            link.full_resync(EMPTY, 0, chance.choice([None, MARK]))
            if len(leader.links) > rounds:
                return link.send(stream)
            link.send(damaged())
            time.sleep(0.02)
            link.close()
            return None

        leader = self.lead(script)
        replica = self.start_replica("--rdb-foreign-types", "skip")
        self.server.expect_log("A command of the leader failed")
        self.follow(replica, leader.port)

        def is_through():
            # The pause would grow: asking for the same leader again ends it.
            replica.call("REPLICAOF", "127.0.0.1", leader.port)
            return len(leader.links) > rounds

        wait_until(is_through, 60, "all rounds")
        self.wait_for_ack(leader, len(stream))
        self.assertEqual(replica.call("GET", "a"), b"x" * 50)
        self.assertEqual(replica.call("DBSIZE"), 3)
        self.assertEqual(replica.call("BF.CARD", "f"), 20)

    def test_an_old_leader_without_psync(self):
        def script(link):
            if link.asked[0] == b"PSYNC":
                link.send(b"-ERR unknown command 'PSYNC'\r\n")
                link.shake_hands()
            link.send_snapshot(SMALL)
            link.send_commands(("SELECT", "0"), ("SET", "more", "1"))

        leader, replica = self.follow_script(script)
        wait_until(lambda: replica.call("GET", "more") == b"1")
        self.check_all(replica, "redisbloom")
        self.assertEqual(leader.links[0].acks, [])

    def test_what_a_replica_says(self):
        leader, replica = self.follow_script(lambda link: link.full_resync(EMPTY))
        said = [b" ".join(words) for words in leader.links[0].said]
        self.assertEqual(said[0], b"PING")
        self.assertEqual(said[1], b"REPLCONF listening-port %d" % self.server.port)
        self.assertEqual(said[2], b"REPLCONF capa eof capa psync2 capa bloomery")
        self.assertTrue(re.fullmatch(rb"PSYNC [0-9a-f]{40} \d+", said[3]), said[3])


if __name__ == "__main__":
    unittest.main()
