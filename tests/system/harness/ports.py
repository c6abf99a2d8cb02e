# SPDX-License-Identifier: MIT
"""The only allocator of ports: two tests that run at the same time never get the same one."""

import collections
import contextlib
import random
import socket

CLAIMS_MAX = 200  # limit on claims, because each claim needs a descriptor
_claims = collections.deque()


def _claim(port):
    """Returns whether the port is free and free_port() has given it to no running process, this one
    included. A claim is a name in the abstract namespace of Unix sockets. Linux frees the name when
    its owner ends.
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
    """Returns a port on which no process listens, with each of the offsets added. Ports from 32768
    up are left out, because Linux gives them to outgoing connections. Such a connection could take
    the port while a server that holds it restarts."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000 - max(offsets))
        if all(_claim(port + offset) for offset in offsets):
            return port


def free_port_with_bus():
    """Returns a free port whose cluster bus port is also free, for a redis-server in a cluster."""
    return free_port((0, 10_000))
