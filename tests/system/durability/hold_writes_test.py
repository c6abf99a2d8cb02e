#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that CLIENT PAUSE, SHUTDOWN and DEBUG RELOAD wait until all running writes have ended."""

import itertools
import pathlib
import shutil
import tempfile
import threading
import unittest

from harness import ServerTest, wait_until
from harness.resp import ErrorReply, encode

OPTIONS = ("--io-threads", "4", "--enable-debug-command", "yes")


def changes(connection):
    text = connection.call("INFO", "persistence").decode()
    return int(text.partition("rdb_changes_since_last_save:")[2].split()[0])


class HoldWritesTest(ServerTest):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-hold-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def start(self):
        return self.start_server(*OPTIONS, directory=self.directory)

    def connect(self, server):
        connection = server.connect()
        self.addCleanup(connection.close)
        return connection

    def await_command(self, connection, name):
        """Waits until CLIENT LIST shows a client whose last command is `name`."""
        seen = f" cmd={name} ".encode()
        wait_until(lambda: seen in connection.call("CLIENT", "LIST"), what=f"{name} runs")

    def begin_slow_transaction(self, server, watching):
        """Sends a transaction that sleeps for half a second and then writes one key."""
        writing = self.connect(server)
        parts = (("MULTI",), ("DEBUG", "SLEEP", "0.5"), ("SET", "key", "value"), ("EXEC",))
        writing.send(b"".join(encode(*part) for part in parts))
        self.await_command(watching, "exec")
        return writing

    def test_no_write_takes_effect_after_client_pause(self):
        for mode in ("WRITE", "ALL"):
            server = self.start()
            watching, pausing = self.connect(server), self.connect(server)
            writing = self.begin_slow_transaction(server, watching)
            self.assertEqual(pausing.call("CLIENT", "PAUSE", "100000", mode), b"OK")
            self.assertEqual(pausing.call("CLIENT", "UNPAUSE"), b"OK")
            self.assertEqual(changes(pausing), 1)
            replies = [writing.read_reply()[0] for _ in range(4)]
            self.assertEqual(replies[-1], [b"OK", b"OK"])
            server.crash()

    def test_shutdown_saves_every_write_that_is_answered(self):
        server = self.start()
        watching, ending = self.connect(server), self.connect(server)
        writing = self.connect(server)
        # BF.MADD hashes its items after its checks and before it locks the filter's key. For this
        # many items, hashing takes as long as a small save. So SHUTDOWN could save while BF.MADD
        # hashes.
        sent = threading.Thread(
            target=writing.send, args=(encode("BF.MADD", "filter", *range(300_000)),)
        )
        sent.start()
        self.await_command(watching, "bf.madd")
        sent.join()
        ending.send(encode("SHUTDOWN", "SAVE", "NOW"))
        try:
            was_answered = not isinstance(writing.read_reply()[0], ErrorReply)
        except (EOFError, ConnectionResetError):
            was_answered = False
        self.assertEqual(server.wait_for_exit(), 0)
        server = self.start()
        found = self.connect(server).call("BF.CARD", "filter")
        if was_answered:
            self.assertGreater(found, 290_000)

    def test_a_reload_loses_no_write(self):
        server = self.start()
        reloading = self.connect(server)
        stop = threading.Event()
        written = [[] for _ in range(3)]

        def write(keys, number):
            with server.connect() as connection:
                for count in itertools.count():
                    if stop.is_set():
                        return
                    batch = [f"{number}:{count}:{i}" for i in range(20)]
                    connection.send(b"".join(encode("SET", key, "") for key in batch))
                    replies = [connection.read_reply()[0] for _ in batch]
                    keys += [k for k, reply in zip(batch, replies) if reply == b"OK"]

        threads = [threading.Thread(target=write, args=pair) for pair in zip(written, range(3))]
        for thread in threads:
            thread.start()
        for _ in range(20):
            self.assertEqual(reloading.call("DEBUG", "RELOAD"), b"OK")
        stop.set()
        for thread in threads:
            thread.join()
        keys = [key for some in written for key in some]
        lost = [key for key in keys if reloading.call("EXISTS", key) == 0]
        self.assertFalse(lost, f"{len(lost)} of {len(keys)} are lost")


if __name__ == "__main__":
    unittest.main()
