# SPDX-License-Identifier: MIT
"""A raw RESP2/RESP3 client: sends any bytes, and keeps the exact bytes of each reply.

Real client libraries hide the exact reply; tests that compare byte for byte use this client. A
parsed reply is bytes for strings (Simple for `+`), int, None, float, bool, list, dict, set, Push,
or ErrorReply. An ErrorReply is a value and never raised, because many tests expect errors.
"""

import select
import socket

from harness.waiting import DEADLINE_S


class ErrorReply:
    """An error reply: the line after `-`."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return f"ErrorReply({self.text!r})"

    def __eq__(self, other):
        return isinstance(other, ErrorReply) and other.text == self.text

    def __hash__(self):
        return hash(self.text)


class Simple(bytes):
    """A simple string: the line after `+`. It compares equal to a bulk string with the same bytes.
    """


class Push(list):
    """A push message of RESP3, which begins with `>`."""


class ProtocolError(Exception):
    """Raised if the server sends bytes that are not RESP."""


def encode(*arguments):
    """Returns one command as an array of bulk strings."""
    out = [b"*%d\r\n" % len(arguments)]
    for argument in arguments:
        if isinstance(argument, str):
            argument = argument.encode()
        elif not isinstance(argument, (bytes, bytearray)):
            argument = str(argument).encode()
        out.append(b"$%d\r\n%b\r\n" % (len(argument), argument))
    return b"".join(out)


def _parse_double(text):
    return float(text.decode())


def plain(reply):
    """Converts a reply into a value that JSON can hold."""
    if isinstance(reply, bytes):
        return reply.decode()
    return [plain(one) for one in reply] if isinstance(reply, list) else reply


class Connection:
    """One socket connection. Not thread-safe."""

    def __init__(self, port=None, *, unix_path=None, host="127.0.0.1", timeout_s=None):
        timeout_s = DEADLINE_S if timeout_s is None else timeout_s
        if unix_path is not None:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.settimeout(timeout_s)
            self.socket.connect(unix_path)
        else:
            self.socket = socket.create_connection((host, port), timeout=timeout_s)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()
        self._position = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def call(self, *arguments):
        """Sends one command and returns its parsed reply."""
        self.send(encode(*arguments))
        return self.read_reply()[0]

    def call_raw(self, *arguments):
        """Sends one command and returns the bytes of its reply."""
        self.send(encode(*arguments))
        return self.read_reply()[1]

    def pipeline(self, commands):
        """Sends all commands, then reads their replies. Returns [(parsed, raw)] in the order of the
        commands.

        REQUIRES: the replies fit the sockets' buffers, because the client does not read while it
        sends.
        """
        self.send(b"".join(encode(*command) for command in commands))
        return [self.read_reply() for _ in commands]

    def read_reply(self):
        """Reads exactly one reply; returns (parsed, raw bytes)."""
        value = self._read_value()
        raw = bytes(self._buffer[: self._position])
        del self._buffer[: self._position]
        self._position = 0
        return value, raw

    def has_reply(self, timeout_s=0):
        """Returns whether bytes of a reply are unread, or arrive within `timeout_s`."""
        return bool(self._buffer) or bool(select.select([self.socket], [], [], timeout_s)[0])

    def read_to_end(self):
        """Reads until the server closes or resets the connection. Returns all unread bytes."""
        try:
            while self._receive():
                pass
        except ConnectionResetError:
            pass
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    def is_closed_by_server(self, timeout_s=DEADLINE_S):
        """Reads until the server closes the connection, and returns True. Returns False if the
        server sends nothing for `timeout_s`.
        """
        self.socket.settimeout(timeout_s)
        try:
            self.read_to_end()
            return True
        except socket.timeout:
            return False

    def _receive(self):
        data = self.socket.recv(1 << 16)
        self._buffer += data
        return data

    def _need(self, size):
        while len(self._buffer) - self._position < size:
            if not self._receive():
                raise EOFError(f"closed by the server after {bytes(self._buffer)!r}")

    def _read_line(self):
        start = self._position
        while (end := self._buffer.find(b"\r\n", start)) < 0:
            self._need(len(self._buffer) - self._position + 1)
        line = bytes(self._buffer[self._position : end])
        self._position = end + 2
        return line

    def _read_bulk(self, size):
        self._need(size + 2)
        data = bytes(self._buffer[self._position : self._position + size])
        end = self._position + size
        if self._buffer[end : end + 2] != b"\r\n":
            raise ProtocolError(f"bulk of {size} bytes not ended by CR LF")
        self._position = end + 2
        return data

    def _read_value(self):
        line = self._read_line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return Simple(rest)
        if kind == b"-":
            return ErrorReply(rest.decode("latin-1"))
        if kind in (b":", b"("):
            return int(rest)
        if kind == b"_":
            return None
        if kind == b"#":
            return {b"t": True, b"f": False}[rest]
        if kind == b",":
            return _parse_double(rest)
        return self._read_sized(kind, int(rest))

    def _read_sized(self, kind, size):
        if kind == b"$":
            return None if size < 0 else self._read_bulk(size)
        if kind == b"=":
            return self._read_bulk(size)[4:]
        if kind == b"!":
            return ErrorReply(self._read_bulk(size).decode("latin-1"))
        if kind == b"*" and size < 0:
            return None
        if kind in (b"*", b">", b"~"):
            items = [self._read_value() for _ in range(size)]
            return Push(items) if kind == b">" else items
        if kind == b"%":
            return {self._read_value(): self._read_value() for _ in range(size)}
        raise ProtocolError(f"unknown reply type {kind!r}")
