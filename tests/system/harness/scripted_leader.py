# SPDX-License-Identifier: MIT
"""A fake leader whose replies a test scripts: snapshots from files, streams, or invalid data."""

import contextlib
import socket
import threading

REPLICATION_ID = "a" * 40


def read_command(stream):
    """Returns one command of a replica, as a list of bytes; None if the connection has ended."""
    while True:
        line = stream.readline()
        if not line:
            return None
        line = line.rstrip(b"\r\n")
        if not line:
            continue
        if not line.startswith(b"*"):
            return line.split()
        words = []
        for _ in range(int(line[1:])):
            size = int(stream.readline()[1:])
            words.append(stream.read(size + 2)[:-2])
        return words


class ScriptedLeader:
    """Answers the handshake of each replica that connects, then calls `script(link)`.

    The script sends data with link.send(). `link.asked` is the replica's PSYNC or SYNC command.
    `link.acks` lists the offsets that the replica has acknowledged.
    """

    def __init__(self, script):
        self.script = script
        self.links = []
        self.problems = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()
        for link in list(self.links):
            link.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            link = Link(connection)
            self.links.append(link)
            threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link):
        try:
            if link.shake_hands():
                self.script(link)
                link.read_acks()
        except (OSError, ValueError):
            pass
        except Exception as problem:  # noqa: BLE001: the test reports `problem`
            self.problems.append(problem)
        finally:
            link.close()


class Link:
    def __init__(self, connection):
        self.connection = connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = connection.makefile("rb")
        self.said = []
        self.asked = None
        self.acks = []

    def shake_hands(self):
        while (command := read_command(self.stream)) is not None:
            self.said.append(command)
            name = command[0].upper()
            if name in (b"PSYNC", b"SYNC"):
                self.asked = command
                return True
            self.send(b"+PONG\r\n" if name == b"PING" else b"+OK\r\n")
        return False

    def read_acks(self):
        while (command := read_command(self.stream)) is not None:
            if command[:2] == [b"REPLCONF", b"ACK"]:
                self.acks.append(int(command[2]))

    def send(self, data):
        self.connection.sendall(data)

    def full_resync(self, snapshot, offset=0, mark=None, replication_id=REPLICATION_ID):
        """Answers PSYNC with FULLRESYNC. Sends the snapshot with its size, or with the end mark
        `mark` if one is given.
        """
        self.send(b"+FULLRESYNC %b %d\r\n" % (replication_id.encode(), offset))
        self.send_snapshot(snapshot, mark)

    def send_snapshot(self, snapshot, mark=None):
        if mark is None:
            self.send(b"$%d\r\n" % len(snapshot) + snapshot)
        else:
            self.send(b"$EOF:" + mark + b"\r\n" + snapshot + mark)

    def close(self):
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self.connection.close()
