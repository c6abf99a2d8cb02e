#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the server's etcd client with a real etcd of one or three members. Some tests kill or
suspend members of etcd, and some of these take the quorum away. Other tests use authentication, TLS
and compaction.

Environment:
  BLOOMERY_ETCD_PROBE  the program that drives the client (default build/release/tests/etcd_probe)
"""

import json
import os
import pathlib
import queue
import subprocess
import tempfile
import threading
import time
import unittest

from harness import DEADLINE_S, ROOT, let_time_pass, wait_until
from harness.etcd import EtcdTest, die_with_parent
from harness.tls_files import TlsFiles

PROBE = pathlib.Path(
    os.environ.get("BLOOMERY_ETCD_PROBE", ROOT / "build" / "release" / "tests" / "etcd_probe")
).absolute()
LIMIT_MS = 700  # the server's default timeout for calls of etcd
NOT_FOUND = 5
PERMISSION_DENIED = 7
OUT_OF_RANGE = 11


class Probe:
    """A running etcd_probe, which calls etcd through the server's client. Calls are numbered,
    because replies may arrive in any order."""

    def __init__(self, endpoints, *options):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [PROBE, ",".join(endpoints), *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent,
        )  # fmt: skip
        self.lines = queue.Queue()
        self.answers = {}
        self.news = {}
        self.sent = 0
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def _take(self, deadline):
        line = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
        if line is None:
            raise AssertionError(f"etcd_probe has ended: {self.process.wait()}")
        if "call" in line:
            self.answers[line["call"]] = line
        else:
            self.news.setdefault(line["watch"], []).append(line)

    def send(self, *words):
        self.sent += 1
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.sent

    def wait(self, call):
        deadline = time.monotonic() + DEADLINE_S
        while call not in self.answers:
            self._take(deadline)
        return self.answers.pop(call)

    def call(self, *words):
        return self.wait(self.send(*words))

    def answered(self, *words):
        """Sends a call and returns its reply. Fails if the outcome is not `answered`."""
        reply = self.call(*words)
        if reply["outcome"] != "answered":
            raise AssertionError(f"{words}: {reply}")
        return reply

    def retried(self, *words):
        """Repeats a call that only reads, until etcd answers. Returns the reply."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            reply = self.call(*words)
            if reply["outcome"] == "answered":
                return reply
            if time.monotonic() > deadline:
                raise AssertionError(f"{words}: {reply}")

    def settled(self, *words):
        """Repeats a call until its outcome is known, and returns the reply. The call may be
        executed twice. On a busy machine a big call may take longer than its timeout."""
        deadline = time.monotonic() + DEADLINE_S
        while (reply := self.call(*words))["outcome"] == "unknown":
            if time.monotonic() > deadline:
                raise AssertionError(f"{words[:2]}: {reply}")
        return reply

    def value(self, key):
        kvs = self.retried("range", key)["kvs"]
        return kvs[0]["value"] if kvs else None

    def watch(self, prefix):
        """Starts a watch for future changes below a prefix. Returns the watch's number once etcd
        has confirmed the watch."""
        watch = self.send("watch", prefix, 0)
        self.wait_for_news(watch, lambda news: "events" in news)
        return watch

    def events(self, watch, count):
        """Waits for `count` events of a watch. Returns all its events so far, each as (deleted,
        key, value)."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            news = self.news.get(watch, [])
            events = [event for each in news for event in each.get("events", [])]
            if len(events) >= count:
                return [(event["deleted"], event["key"], event["value"]) for event in events]
            self._take(deadline)

    def wait_for_news(self, watch, condition):
        deadline = time.monotonic() + DEADLINE_S
        while not any(condition(news) for news in self.news.get(watch, [])):
            self._take(deadline)

    def stop(self):
        self.process.stdin.close()
        try:
            status = self.process.wait(timeout=DEADLINE_S)
        finally:
            self.process.kill()
        self.reader.join()
        self.process.stdout.close()
        return status


class ProbeTest(EtcdTest):
    def probe(self, endpoints, *options, limit_ms=5000):
        """Starts an etcd_probe. The timeout of its calls is long, except in tests of calls that
        time out."""
        probe = Probe(endpoints, "--limit", str(limit_ms), *map(str, options))
        self.addCleanup(lambda: self.assertEqual(probe.stop(), 0))
        return probe


class OneMemberTest(ProbeTest):
    def setUp(self):
        self.etcd = self.start_etcd()
        self.client = self.probe(self.etcd.endpoints)

    def test_values_are_put_compared_and_read(self):
        client = self.client
        self.assertEqual(client.answered("range", "a/1")["kvs"], [])
        first = client.answered("put", "a/1", "x")["revision"]
        self.assertEqual(client.answered("range", "a/1")["kvs"],
                         [{"key": "a/1", "value": "x", "mod": first, "lease": 0}])  # fmt: skip
        lost = client.answered("cas", "a/1", first - 1, "y")
        self.assertFalse(lost["succeeded"])
        self.assertEqual(lost["kvs"][0]["value"], "x")
        won = client.answered("cas", "a/1", first, "y")
        self.assertTrue(won["succeeded"])
        self.assertEqual(client.answered("range", "a/1")["kvs"][0]["mod"], won["revision"])
        client.answered("put", "a/2", "z")
        client.answered("put", "b", "z")
        keys = [kv["key"] for kv in client.answered("prefix", "a/")["kvs"]]
        self.assertEqual(keys, ["a/1", "a/2"])

    def test_keys_go_with_their_lease(self):
        client = self.client
        lease = client.answered("grant", 60)["lease"]
        self.assertEqual(client.answered("keepalive", lease)["ttl"], 60)
        self.assertTrue(client.answered("create", "alive", "me", lease)["succeeded"])
        again = client.answered("create", "alive", "other", lease)
        self.assertFalse(again["succeeded"])
        self.assertEqual(again["kvs"][0]["lease"], lease)
        client.answered("revoke", lease)
        self.assertIsNone(client.value("alive"))
        self.assertEqual(client.answered("keepalive", lease)["ttl"], 0)
        for words in (("revoke", lease), ("put", "k", "v", lease)):
            reply = client.call(*words)
            self.assertEqual((reply["outcome"], reply["code"]), ("refused", NOT_FOUND), reply)

    def test_changes_are_watched(self):
        client = self.client
        before = client.answered("put", "a/1", "old")["revision"]
        client.answered("put", "a/1", "missed")
        watch = client.send("watch", "a/", before + 1)
        client.answered("put", "b", "not watched")
        client.answered("put", "a/2", "x")
        lease = client.answered("grant", 60)["lease"]
        client.answered("create", "a/3", "y", lease)
        client.answered("revoke", lease)
        self.assertEqual(
            client.events(watch, 4),
            [(False, "a/1", "missed"), (False, "a/2", "x"), (False, "a/3", "y"), (True, "a/3", "")],
        )
        client.send("cancel", watch)
        client.answered("put", "a/2", "after the end")
        self.assertEqual(len(client.events(watch, 4)), 4)

    def test_watch_goes_on_when_the_member_is_back(self):
        client = self.client
        watch = client.watch("a")
        client.answered("put", "a", "1")
        client.events(watch, 1)
        self.etcd.members[0].kill()
        # No member of etcd runs, so the client knows that etcd has not received the call.
        self.assertEqual(client.call("put", "a", "2")["outcome"], "refused")
        self.etcd.start()
        client.retried("range", "a")
        client.answered("put", "a", "3")
        client.answered("put", "a", "4")
        self.assertEqual([event[2] for event in client.events(watch, 3)], ["1", "3", "4"])

    def test_watch_reports_changes_made_while_away(self):
        client = self.client
        watch = client.watch("a")
        self.etcd.members[0].kill()
        self.etcd.start()
        for i in range(5):
            self.etcd.control("put", "a", i)
        self.assertEqual([event[2] for event in client.events(watch, 5)], list("01234"))

    def test_compaction_ends_a_watch(self):
        client = self.client
        for i in range(5):
            revision = client.answered("put", "a", i)["revision"]
        self.etcd.control("compact", revision)
        watch = client.send("watch", "a", 2)
        client.wait_for_news(watch, lambda news: news.get("code") == OUT_OF_RANGE)
        watch = client.send("watch", "a", revision)
        self.assertEqual(client.events(watch, 1), [(False, "a", "4")])

    def test_large_values_pass_and_larger_ones_are_refused(self):
        self.assertEqual(self.client.settled("put", "a", "x" * 1_000_000)["outcome"], "answered")
        self.assertEqual(len(self.client.value("a")), 1_000_000)
        watch = self.client.send("watch", "a", 1)
        self.assertEqual(len(self.client.events(watch, 1)[0][2]), 1_000_000)
        reply = self.client.settled("put", "a", "x" * 1_800_000)
        self.assertEqual(reply["outcome"], "refused", reply)

    def test_suspended_member_leaves_the_outcome_unknown(self):
        client = self.probe(self.etcd.endpoints, limit_ms=LIMIT_MS)
        client.settled("put", "a", "1")
        self.etcd.members[0].suspend()
        reply = client.call("put", "a", "2")
        self.assertEqual(reply["outcome"], "unknown", reply)
        self.etcd.members[0].resume()
        # etcd either executes the call after it resumes, or drops the call with its connection. The
        # outcome "unknown" allows both.
        self.assertIn(client.value("a"), ("1", "2"))


class ThreeMembersTest(ProbeTest):
    def setUp(self):
        self.etcd = self.start_etcd(members=3)

    def from_leader(self):
        """Returns etcd's leader, and the endpoints of all members. The leader's endpoint is the
        first."""
        leader = self.etcd.leader()
        followers = self.etcd.followers(leader)
        return leader, [member.endpoint for member in (leader, *followers)]

    def test_killed_member_costs_no_answer(self):
        leader, endpoints = self.from_leader()
        client = self.probe(endpoints)
        watch = client.watch("a")
        client.answered("put", "a", "1")
        leader.kill()
        self.assertEqual(client.value("a"), "1")
        wait_until(lambda: client.call("put", "a", "2")["outcome"] == "answered", "an answer")
        self.assertEqual(client.events(watch, 2)[0], (False, "a", "1"))

    def test_suspended_member_moves_calls_and_watches(self):
        leader, endpoints = self.from_leader()
        client = self.probe(endpoints, limit_ms=2000)
        watch = client.watch("a")
        first = client.answered("put", "a", "1")["revision"]
        client.events(watch, 1)
        leader.suspend()
        self.assertEqual(client.value("a"), "1")
        # The call writes only if the key still has this revision, so a retry cannot write twice.
        wait_until(
            lambda: client.call("cas", "a", first, "2") and client.value("a") == "2", "the change"
        )
        self.assertEqual(client.events(watch, 2), [(False, "a", "1"), (False, "a", "2")])
        leader.resume()

    def test_change_may_come_after_its_time_limit(self):
        for _ in range(5):
            leader = self.etcd.leader()
            client = self.probe([self.etcd.followers(leader)[0].endpoint], limit_ms=LIMIT_MS)
            client.settled("put", "a", "1")
            leader.suspend()
            reply = client.call("put", "a", "late")
            leader.resume()
            if reply["outcome"] != "answered":  # etcd elected a new leader in time
                break
        self.assertEqual(reply["outcome"], "unknown", reply)

    def test_lost_quorum_answers_nothing(self):
        leader, endpoints = self.from_leader()
        client = self.probe(endpoints, limit_ms=LIMIT_MS)
        client.settled("put", "a", "1")
        for member in self.etcd.followers(leader):
            member.kill()
        self.assertNotEqual(client.call("range", "a")["outcome"], "answered")
        self.assertNotEqual(client.call("put", "a", "2")["outcome"], "answered")
        self.assertEqual(leader.process.poll(), None)
        self.etcd.start()
        self.assertIn(client.value("a"), ("1", "2"))

    def test_watch_leaves_a_member_that_knows_no_leader(self):
        leader = self.etcd.leader()
        others = self.etcd.followers(leader)
        client = self.probe([leader.endpoint])
        watch = client.watch("a")
        client.answered("put", "a", "1")
        client.events(watch, 1)
        for member in others:
            member.kill()
        let_time_pass(6, why="the member ends its watches after about four seconds")
        self.etcd.start()
        self.etcd.control("put", "a", "2")
        self.assertEqual([event[2] for event in client.events(watch, 2)], ["1", "2"])


class AuthenticationTest(ProbeTest):
    def setUp(self):
        self.etcd = self.start_etcd()
        # The client starts before authentication is enabled, because an operator may enable it
        # later.
        self.client = self.probe(self.etcd.endpoints, "--user", "bloomery", "--password", "secret")
        self.client.answered("put", "bloomery/a", "1")
        self.etcd.enable_auth("secret")

    def test_user_reads_writes_and_watches_the_prefix(self):
        watch = self.client.watch("bloomery/")
        self.client.answered("put", "bloomery/a", "2")
        self.assertEqual(self.client.events(watch, 1), [(False, "bloomery/a", "2")])
        reply = self.client.call("put", "elsewhere", "x")
        self.assertEqual((reply["outcome"], reply["code"]), ("refused", PERMISSION_DENIED), reply)
        denied = self.client.send("watch", "elsewhere", 0)
        self.client.wait_for_news(denied, lambda news: news.get("code") == PERMISSION_DENIED)

class EncryptionTest(ProbeTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="bloomery-etcd-tls-")
        self.addCleanup(folder.cleanup)
        self.tls = TlsFiles(folder.name)
        self.tls.make_authority("other-ca")
        self.etcd = self.start_etcd(tls=self.tls)

    def test_member_is_verified(self):
        client = self.probe(self.etcd.endpoints, "--cacert", self.tls.path("ca.crt"))
        watch = client.watch("a")
        client.answered("put", "a", "1")
        self.assertEqual(client.events(watch, 1), [(False, "a", "1")])
        distrusting = self.probe(self.etcd.endpoints, "--cacert", self.tls.path("other-ca.crt"))
        reply = distrusting.call("put", "a", "2")
        self.assertEqual(reply["outcome"], "refused", reply)
        self.assertRegex(reply["message"], "certificate verify failed: .*certificate")

    def test_name_is_verified(self):
        port = self.etcd.members[0].client_port
        client = self.probe([f"https://localhost:{port}", f"https://127.0.0.2:{port}"],
                            "--cacert", self.tls.path("ca.crt"))  # fmt: skip
        client.answered("put", "a", "1")
        # 127.1 is another name of 127.0.0.1, which the certificate does not have.
        other = self.probe([f"https://127.1:{port}"], "--cacert", self.tls.path("ca.crt"))
        reply = other.call("put", "a", "2")
        self.assertEqual(reply["outcome"], "refused")
        self.assertIn("hostname mismatch", reply["message"])


if __name__ == "__main__":
    unittest.main()
