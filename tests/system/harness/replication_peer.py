# SPDX-License-Identifier: MIT
"""Further shared parts of replication tests: a minimal replica on a socket, a proxy that cuts
links, and threads that write.
"""

import random
import socket
import threading
import time

from harness.resp import Connection, encode
from harness.waiting import DEADLINE_S, pace


class RawReplica:
    """A minimal replica: implements the replica's side of PSYNC on a socket, and keeps the received
    replication stream.
    """

    def __init__(self, port, *, capa=("eof", "psync2")):
        self.link = Connection(port)
        self.buffer = bytearray()
        self.stream = bytearray()
        self.id = None
        self.offset = 0
        for name in capa:
            assert self.link.call("REPLCONF", "capa", name) == b"OK"

    def close(self):
        self.link.close()

    def receive(self):
        data = self.link.socket.recv(1 << 16)
        if not data:
            raise EOFError("closed by the leader")
        self.buffer += data

    def read_line(self):
        """Returns the next line from the leader, without its line end. Skips empty lines, which the
        leader sends to keep the connection alive.
        """
        while True:
            while b"\n" not in self.buffer:
                self.receive()
            line, _, rest = bytes(self.buffer).partition(b"\n")
            self.buffer = bytearray(rest)
            if line.rstrip(b"\r"):
                return line.rstrip(b"\r")

    def read_exactly(self, size):
        while len(self.buffer) < size:
            self.receive()
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data

    def psync(self, replication_id="?", offset=-1):
        """Sends PSYNC and returns the leader's reply. If the reply starts a full sync, stores the
        leader's replication id and offset.
        """
        self.link.send(encode("PSYNC", replication_id, offset))
        line = self.read_line()
        if line.startswith(b"+FULLRESYNC"):
            _, own_id, own_offset = line.decode().split()
            self.id, self.offset = own_id, int(own_offset)
        return line

    def read_snapshot(self):
        """Reads and returns the snapshot. The leader sends the size of the snapshot first, or an
        end mark last.
        """
        line = self.read_line()
        assert line.startswith(b"$"), line
        if not line.startswith(b"$EOF:"):
            return self.read_exactly(int(line[1:]))
        mark = line[5:]
        assert len(mark) == 40, line
        looked_at = 0
        while self.buffer.find(mark, looked_at) < 0:
            looked_at = max(0, len(self.buffer) - len(mark))
            self.receive()
        data, _, rest = bytes(self.buffer).partition(mark)
        self.buffer = bytearray(rest)
        return data

    def full_sync(self):
        line = self.psync()
        assert line.startswith(b"+FULLRESYNC"), line
        snapshot = self.read_snapshot()
        self.ack()
        return snapshot

    def ack(self, offset=None, *more):
        self.link.send(encode("REPLCONF", "ACK", self.offset if offset is None else offset, *more))

    def read_stream(self, size):
        """Reads `size` bytes of the replication stream, appends them to `stream` and adds `size` to
        `offset`.
        """
        data = self.read_exactly(size)
        self.stream += data
        self.offset += size
        return data

    def read_command(self):
        """Reads the next command of the replication stream and returns its arguments."""

        def read_number(kind):
            while b"\r\n" not in self.buffer:
                self.receive()
            line = self.read_stream(self.buffer.index(b"\r\n") + 2)
            assert line[:1] == kind, line
            return int(line[1:])

        count = read_number(b"*")
        return [self.read_stream(read_number(b"$") + 2)[:-2] for _ in range(count)]

    def read_stream_until(self, text):
        deadline = time.monotonic() + DEADLINE_S
        while text not in self.buffer:
            assert time.monotonic() < deadline, bytes(self.buffer)
            self.receive()
        return self.read_stream(self.buffer.index(text) + len(text))


class CuttingProxy:
    """Forwards bytes between replicas and their leader. `lengths()` is called for each new link. It
    returns the number of bytes from the leader after which the proxy cuts this link, or None for no
    cut.
    """

    def __init__(self, port, lengths=lambda: None):
        self.port_behind = port
        self.lengths = lengths
        self.cuts = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.is_open = True
        self.pairs = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.is_open = False
        self.listener.close()
        self.cut_all()

    def cut_all(self):
        for pair in self.pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def _accept(self):
        while self.is_open:
            try:
                client, _ = self.listener.accept()
                behind = socket.create_connection(("127.0.0.1", self.port_behind))
            except OSError:
                continue
            pair = (client, behind)
            self.pairs.append(pair)
            limit = self.lengths()
            threading.Thread(target=self._pass, args=(client, behind, None), daemon=True).start()
            threading.Thread(target=self._pass, args=(behind, client, limit), daemon=True).start()

    def _pass(self, source, target, limit):
        try:
            while limit is None or limit > 0:
                data = source.recv(1 << 16 if limit is None else min(limit, 1 << 16))
                if not data:
                    break
                target.sendall(data)
                if limit is not None:
                    limit -= len(data)
            if limit == 0:
                self.cuts += 1
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Writers:
    """Runs threads that write strings, and filters if `filters` is set, until stop()."""

    def __init__(self, port, count, seed, *, filters=False):
        self.stopping = False
        self.commands = 0
        self.threads = [
            threading.Thread(target=self._run, args=(port, seed + i, filters)) for i in range(count)
        ]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()

    def _run(self, port, seed, filters):
        rng = random.Random(seed)
        with Connection(port) as client:
            while not self.stopping:
                commands = [self._command(rng, filters) for _ in range(rng.randrange(1, 20))]
                if rng.random() < 0.2:
                    commands = [("MULTI",), *commands, ("EXEC",)]
                client.pipeline([("SELECT", rng.randrange(3)), *commands])
                self.commands += len(commands)
                pace(0.001)

    @staticmethod
    def _command(rng, filters):
        key = f"k{rng.randrange(300)}"
        choices = [
            ("SET", key, "v" * rng.randrange(200)),
            ("APPEND", key, f"{rng.randrange(100)}"),
            ("DEL", key),
            ("SETBIT", f"bits{rng.randrange(20)}", rng.randrange(2000), rng.randrange(2)),
            ("SET", key, "short", "PX", rng.randrange(1, 3000)),
            ("PEXPIRE", key, rng.randrange(1, 3000)),
        ]
        if filters:
            name = f"f{rng.randrange(10)}"
            choices += [
                ("BF.ADD", name, rng.randrange(100_000)),
                ("BF.MADD", name, *(rng.randrange(100_000) for _ in range(10))),
            ]
        return rng.choice(choices)
