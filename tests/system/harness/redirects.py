# SPDX-License-Identifier: MIT
"""A client of a cluster that counts how often each of its requests is redirected."""

import threading
import time

from harness.resp import Connection, ErrorReply
from harness.waiting import DEADLINE_S, pace


class FollowingClient(threading.Thread):
    """Adds numbered items to a filter, one after the other. Follows a MOVED reply at once, with a
    new connection. When a connection is lost, repeats the request at the next server.
    """

    PAUSE_S = 0.002
    MOVED_MAX = 1000  # number of redirects after which a request gives up

    def __init__(self, name, *ports):
        super().__init__(daemon=True)
        self.filter_name = name
        self.ports = ports
        self.port = ports[0]
        self.added = 0
        self.moved = []  # number of redirects of each request
        self.unknown = 0  # number of requests whose connection was closed before the reply
        self.pauses = []  # duration of each request in seconds
        self.errors = []
        self.connection = None
        self.is_ending = threading.Event()
        self.start()

    def run(self):
        while not self.is_ending.is_set():
            begin = time.monotonic()
            try:
                self.moved.append(self.add())
            except ValueError as error:
                self.errors.append((time.monotonic(), str(error)))
                return
            self.pauses.append(time.monotonic() - begin)
            self.added += 1
            pace(self.PAUSE_S)

    def add(self):
        """Adds one item. Returns how many MOVED replies the request got before the item was added.
        """
        for moved in range(self.MOVED_MAX):
            reply = self.ask()
            if reply in (0, 1):
                return moved
            if not (isinstance(reply, ErrorReply) and reply.text.startswith("MOVED ")):
                raise ValueError(str(reply))
            self.go_to(int(reply.text.rpartition(":")[2]))
        raise ValueError(f"sent on {self.MOVED_MAX} times")

    def ask(self):
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            try:
                self.connection = self.connection or Connection(self.port, timeout_s=DEADLINE_S)
                return self.connection.call("BF.ADD", self.filter_name, str(self.added))
            except (OSError, EOFError):
                self.unknown += self.connection is not None
                self.go_to(self.ports[(self.ports.index(self.port) + 1) % len(self.ports)])
                pace(self.PAUSE_S)
        raise ValueError("no server answers")

    def go_to(self, port):
        if self.connection is not None:
            self.connection.close()
        self.connection = None
        self.port = port

    def end(self):
        self.is_ending.set()
        self.join(DEADLINE_S)
        self.go_to(self.port)
