# SPDX-License-Identifier: MIT
"""A client that writes numbered keys to one shard of a cluster, and remembers the replies."""

import threading
import time

from harness.resp import Connection, ErrorReply
from harness.waiting import DEADLINE_S, pace, wait_until

KEY_TAG = "{w}"


class Writer(threading.Thread):
    """Writes numbered keys as a client of the cluster does: it follows MOVED and retries. If
    the server `only` is given, writes to no other server. After `timeout_s` without a reply, tries
    the next server.
    """

    def __init__(self, servers, only=None, prefix="k", timeout_s=1.5):
        super().__init__(daemon=True)
        self.servers = [only] if only else servers
        self.only = only
        self.prefix = prefix
        self.timeout_s = timeout_s
        self.acknowledged = []  # Tuples (key, port, time sent, time acknowledged).
        self.refused = []  # Pairs (time, reply).
        self.timeouts = 0  # number of requests that got no reply in time
        self.tried = 0
        self.is_ending = threading.Event()
        self.connection = None
        self.port = self.servers[0].port
        self.start()

    def run(self):
        number = 0
        while not self.is_ending.is_set():
            key = f"{KEY_TAG}:{self.prefix}{number}"
            if self.write(key):
                number += 1
                pace(0.005)
            else:
                pace(0.03)
        self.close()

    def write(self, key):
        self.tried += 1
        begin = time.monotonic()
        try:
            if self.connection is None:
                self.connection = Connection(self.port, timeout_s=self.timeout_s)
            port = self.port
            reply = self.connection.call("SET", key, "v")
        except (OSError, AssertionError, EOFError) as error:
            self.timeouts += isinstance(error, TimeoutError)
            self.turn_to_next()
            return False
        if reply == b"OK":
            self.acknowledged.append((key, port, begin, time.monotonic()))
            return True
        self.refused.append((time.monotonic(), reply))
        if isinstance(reply, ErrorReply) and reply.text.startswith("MOVED") and not self.only:
            self.close()
            self.port = int(reply.text.rpartition(":")[2])
        return False

    def turn_to_next(self):
        self.close()
        ports = [server.port for server in self.servers]
        at = ports.index(self.port) if self.port in ports else 0
        self.port = ports[(at + 1) % len(ports)]

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def end(self):
        self.is_ending.set()
        self.join(DEADLINE_S)

    def wait_for_progress(self, since):
        """Waits until a write sent after `since` is acknowledged. Returns the seconds from `since`
        to the acknowledgement."""
        wait_until(
            lambda: self.acknowledged and self.acknowledged[-1][2] > since,
            lambda: f"a write after the fault; refused: {self.refused[-3:]}",
        )  # fmt: skip
        return next(entry[3] for entry in self.acknowledged if entry[2] > since) - since
