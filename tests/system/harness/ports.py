# SPDX-License-Identifier: MIT
"""Allocates the ports of all tests. Two tests that run at the same time never get the same port."""

import collections
import contextlib
import random
import socket

CLAIMS_MAX = 200  # limit on claimed ports, because each claim holds a descriptor
_claims = collections.deque()


def _claim(port):
    """Claims the port for this process. Returns False if the port is in use, or if a running test
    process (this one included) has claimed it. A claim is a name in the abstract namespace of Unix
    sockets. Linux frees this name when the process ends.
    """
    claim = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(OSError):
        claim.bind(f"\0bloomery-test-port-{port}")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            if len(_claims) == CLAIMS_MAX:
                _claims.popleft().close()
            _claims.append(claim)
            return True
    claim.close()
    return False


def free_port(offsets=(0,)):
    """Returns a port such that no process listens on port + offset, for each of the offsets. Ports
    from 32768 on are not used, because Linux gives them to outgoing connections. Such a connection
    could take the port of a server while the server restarts."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000 - max(offsets))
        if all(_claim(port + offset) for offset in offsets):
            return port


def free_port_with_bus():
    """Returns a free port whose cluster bus port is also free, for a redis-server in a cluster."""
    return free_port((0, 10_000))
