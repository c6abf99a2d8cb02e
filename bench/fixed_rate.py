# SPDX-License-Identifier: MIT
"""Measures latency at a fixed rate: each request is sent at its due time, even if earlier requests
have no reply yet.

A delay is the time from when the request was due until its reply. So a stall of a tenth of a second
delays all requests that were due during the stall, not only one (Tene, "coordinated omission").
One thread sends and receives, on a few connections in turn.
"""

import selectors
import socket
import time

CONNECTIONS = 20
WARM_UP_S = 0.5


def quantile(values, share):
    """Returns the `share` quantile of the sorted values, e.g. the median for 0.5. The result is one
    of the values (nearest-rank method).
    """
    return values[min(len(values) - 1, max(0, -int(-share * len(values) // 1) - 1))]


class FixedRate:
    """Sends requests to a port of this machine at a fixed rate. `make(number)` returns the bytes of
    one request, whose reply must be a single line.
    """

    def __init__(self, port, make, *, connections=CONNECTIONS):
        self.make = make
        self.selector = selectors.DefaultSelector()
        self.links = []
        for _ in range(connections):
            link = socket.create_connection(("127.0.0.1", port), 60)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            due = []  # due times of the unanswered requests, oldest first
            self.selector.register(link, selectors.EVENT_READ, due)
            self.links.append((link, due))
        self.number = 0

    def close(self):
        for link, _ in self.links:
            link.close()
        self.selector.close()

    def run(self, rate, seconds, while_running=None):
        """Returns the sorted delays in seconds of the requests that were due after the warm-up.
        Calls `while_running` once, at the end of the warm-up.
        """
        begin = time.monotonic()
        # All requests are sent, even if this thread falls behind its schedule. Skipping a late
        # request would hide one of the longest delays.
        total = int((WARM_UP_S + seconds) * rate)
        delays, sent, is_warm = [], 0, False
        while True:
            now = time.monotonic()
            if not is_warm and now >= begin + WARM_UP_S:
                is_warm = True
                if while_running:
                    while_running()
            while sent < total and begin + sent / rate <= now:
                link, due = self.links[sent % len(self.links)]
                due.append(begin + sent / rate)
                link.sendall(self.make(self.number))
                self.number += 1
                sent += 1
            if sent == total and not any(due for _, due in self.links):
                return sorted(delays)
            left = begin + sent / rate - now if sent < total else 1
            for key, _ in self.selector.select(max(0, left)):
                self._receive(key, delays, begin + WARM_UP_S)

    @staticmethod
    def _receive(key, delays, since):
        data = key.fileobj.recv(1 << 16)
        if not data:
            raise EOFError("the server closed a connection")
        if b"-" in data[:1]:
            raise ValueError(data)
        now = time.monotonic()
        for _ in range(data.count(b"\n")):
            due = key.data.pop(0)
            if due >= since:
                delays.append(now - due)
