# SPDX-License-Identifier: MIT
"""A TCP proxy between a replica and its leader that cuts connections at chosen bytes."""

import contextlib
import socket
import struct
import threading

from harness.waiting import DEADLINE_S


class CuttingProxy:
    """Forwards connections to 127.0.0.1:`target_port`.

    `budget()` is called for each new connection. It returns the number of bytes from the leader
    after which the proxy cuts this connection, or None for no cut. `count` is the number of
    connections, `cuts` the number of connections cut in this way.
    """

    def __init__(self, target_port, budget=lambda: None):
        self.target_port = target_port
        self.budget = budget
        self.count = 0
        self.cuts = 0
        self.is_refusing = False
        self._lock = threading.Lock()
        self._open = set()
        self._stalled = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self):
        self._listener.close()
        self.cut_all()

    def cut_all(self):
        """Closes the open connections abruptly."""
        with self._lock:
            pairs = list(self._open)
        for pair in pairs:
            self._cut(pair)

    def stall_all(self):
        """Stalls the open connections: they stay open and carry no byte, as behind a middlebox that
        drops packets. New connections work.
        """
        with self._lock:
            self._stalled |= self._open

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self.is_refusing:
                near.close()
                continue
            self.count += 1
            try:
                far = socket.create_connection(("127.0.0.1", self.target_port), timeout=DEADLINE_S)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            pair = (near, far)
            with self._lock:
                self._open.add(pair)
            for source, sink, budget in ((near, far, None), (far, near, self.budget())):
                threading.Thread(
                    target=self._forward, args=(pair, source, sink, budget), daemon=True
                ).start()

    def _forward(self, pair, source, sink, budget):
        try:
            while budget is None or budget > 0:
                data = source.recv(65536 if budget is None else min(budget, 65536))
                if not data:
                    break
                if pair in self._stalled:
                    continue
                sink.sendall(data)
                if budget is not None:
                    budget -= len(data)
        except OSError:
            pass
        if budget == 0:
            self.cuts += 1
        self._cut(pair)

    def _cut(self, pair):
        with self._lock:
            if pair not in self._open:
                return
            self._open.discard(pair)
        for one in pair:
            with contextlib.suppress(OSError):
                # shutdown() wakes the thread that reads from this socket. The peer still receives
                # the data that were forwarded.
                one.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                one.close()


def reset(connection):
    """Closes a socket with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
