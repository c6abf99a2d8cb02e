# SPDX-License-Identifier: MIT
"""Clients for tests of Sentinel. They find the leader through Sentinel, and write until they are
stopped.

Every write has its own key, so that the test detects a lost acknowledged write.
"""

import subprocess
import sys
import threading
import time

import redis
from redis.sentinel import Sentinel
from harness.resp import Connection
from harness.waiting import DEADLINE_S, pace

# A client that gets no reply for this time asks the sentinels which server leads now.
SOCKET_TIMEOUT_S = 1
PAUSE_S = 0.004
PAUSE_AFTER_ERROR_S = 0.05


class Writer:
    """Base class of the writers. Records each acknowledged key with the time of the reply."""

    def __init__(self, name):
        self.name = name
        self.acknowledged = []
        self.errors = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        self._stopping.set()
        self._thread.join(DEADLINE_S)

    def note(self, key):
        self.acknowledged.append((key, time.monotonic()))

    def record_error(self, text):
        self.errors[text] = self.errors.get(text, 0) + 1

    def first_after(self, moment):
        """Returns the time of the first acknowledged write since `moment`; None if there is none
        yet.
        """
        for _, at in reversed(self.acknowledged[-1:]):
            if at < moment:
                return None
        return next((at for _, at in list(self.acknowledged) if at >= moment), None)

    def _run(self):
        raise NotImplementedError


class PythonWriter(Writer):
    """Writes with python3-redis. If `filter_key` is given, the transaction of each write also adds
    the key to this filter. If `confirmed` is set, a write counts only after WAIT has confirmed
    that a replica has the write.
    """

    def __init__(self, sentinels, service, password, *, confirmed=False, filter_key=None):
        super().__init__("python-wait" if confirmed else "python")
        self.confirmed = confirmed
        self.filter_key = filter_key
        finder = Sentinel(sentinels, socket_timeout=SOCKET_TIMEOUT_S)
        self.client = finder.master_for(
            service, socket_timeout=SOCKET_TIMEOUT_S, password=password
        )

    def _run(self):
        number = 0
        while not self._stopping.is_set():
            number += 1
            key = f"{self.name}:{number}"
            try:
                self._write(key)
                pace(PAUSE_S)
            except redis.RedisError as error:
                self.record_error(type(error).__name__ + ": " + str(error)[:40])
                pace(PAUSE_AFTER_ERROR_S)
        self.client.close()

    def _write(self, key):
        if not self.confirmed:
            with self.client.pipeline(transaction=True) as pipeline:
                pipeline.set(key, key)
                if self.filter_key is not None:
                    pipeline.execute_command("BF.ADD", self.filter_key, key)
                pipeline.execute()
            return self.note(key)
        pipeline = self.client.pipeline(transaction=False)
        pipeline.set(key, key).execute_command("WAIT", 1, SOCKET_TIMEOUT_S * 500)
        if pipeline.execute()[1] >= 1:
            return self.note(key)
        return self.record_error("not confirmed by a replica")


class ProgramWriter(Writer):
    """Runs a client program that prints a line `ack KEY` for each acknowledged write. The program
    ends when its standard input ends.
    """

    def __init__(self, name, command):
        super().__init__(name)
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def _run(self):
        for line in self.process.stdout:
            kind, _, rest = line.rstrip("\n").partition(" ")
            if kind == "ack":
                self.note(rest)
            else:
                self.record_error(rest[:60])

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        super().stop()
        self.process.stdout.close()


def write_to_one(host, port, password):
    """Simulates a client that is cut off together with its leader: it writes to this server only.
    Prints `ack KEY` for each acknowledged write. Ends when the standard input ends.
    """
    is_over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
    connection = None
    number = 0
    while not is_over.is_set():
        number += 1
        key = f"loyal:{number}"
        try:
            if connection is None:
                connection = Connection(port, host=host, timeout_s=SOCKET_TIMEOUT_S)
                connection.call("AUTH", password)
            reply = connection.call("SET", key, key)
            print(f"ack {key}" if reply == b"OK" else f"error {reply}", flush=True)
            pace(PAUSE_S)
        except (OSError, EOFError) as error:
            print(f"error {type(error).__name__}", flush=True)
            if connection is not None:
                connection.close()
            connection = None
            pace(PAUSE_AFTER_ERROR_S)


if __name__ == "__main__":
    write_to_one(sys.argv[1], int(sys.argv[2]), sys.argv[3])
