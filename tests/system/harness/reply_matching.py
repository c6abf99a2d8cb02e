# SPDX-License-Identifier: MIT
"""Decides whether two replies of two servers to one command are equivalent."""

from harness.command_stream import TTL_COMMANDS

# Maximum time between the receipt of a command by the two servers, even on a busy machine.
CLOCK_TOLERANCE_S = 20
SHARED_INTEGER_REFCOUNT = 2147483647


def times_match(name, ours, theirs):
    tolerance = CLOCK_TOLERANCE_S * (1000 if name.startswith(b"P") else 1)
    return type(ours) is type(theirs) is int and min(ours, theirs) > 0 and (
        abs(ours - theirs) <= tolerance
    )


def values_match(name, ours, theirs, queued):
    """Returns whether two replies with different bytes are still equivalent."""
    if name == b"OBJECT" and type(ours) is type(theirs) is int:
        # For OBJECT REFCOUNT of a copied small integer, our server replies that of a shared integer
        # and Redis 1.
        return {ours, theirs} == {1, SHARED_INTEGER_REFCOUNT}
    if name in TTL_COMMANDS:
        return times_match(name, ours, theirs)
    if not (isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs)):
        return False
    if name == b"KEYS":
        return sorted(ours) == sorted(theirs)
    if name == b"EXEC":
        # Inside a transaction Redis counts the queued argument among an object's references.
        return all(
            type(a) is type(b)
            and (a == b or queued_name == b"OBJECT" or values_match(queued_name, a, b, []))
            for queued_name, a, b in zip(queued, ours, theirs)
        )
    return False
