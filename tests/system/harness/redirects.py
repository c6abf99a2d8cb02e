# SPDX-License-Identifier: MIT
"""A client of a cluster that counts how often each of its requests is sent on."""

import threading
import time

from harness.resp import Connection, ErrorReply
from harness.waiting import DEADLINE_S, pace


class FollowingClient(threading.Thread):
    """Adds numbered items to a filter, one after the other, and follows MOVED at once."""

    PAUSE_S = 0.002
    MOVED_MAX = 1000  # a request gives up then

    def __init__(self, name, port):
        super().__init__(daemon=True)
        self.filter_name = name
        self.port = port
        self.added = 0
        self.moved = []  # of each request
        self.pauses = []  # seconds, of each request
        self.errors = []
        self.connections = {}
        self.is_ending = threading.Event()
        self.start()

    def run(self):
        while not self.is_ending.is_set():
            begin = time.monotonic()
            try:
                self.moved.append(self.add())
            except (OSError, EOFError, ValueError) as error:
                self.errors.append(f"{type(error).__name__}: {error}")
                return
            self.pauses.append(time.monotonic() - begin)
            self.added += 1
            pace(self.PAUSE_S)

    def add(self):
        """How often it was sent on."""
        for moved in range(self.MOVED_MAX):
            if self.port not in self.connections:
                self.connections[self.port] = Connection(self.port, timeout_s=DEADLINE_S)
            reply = self.connections[self.port].call("BF.ADD", self.filter_name, str(self.added))
            if reply in (0, 1):
                return moved
            if not (isinstance(reply, ErrorReply) and reply.text.startswith("MOVED ")):
                raise ValueError(str(reply))
            self.port = int(reply.text.rpartition(":")[2])
        raise ValueError(f"sent on {self.MOVED_MAX} times")

    def end(self):
        self.is_ending.set()
        self.join(DEADLINE_S)
        for connection in self.connections.values():
            connection.close()
