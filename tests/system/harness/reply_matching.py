# SPDX-License-Identifier: MIT
"""Decides whether the replies of two servers to the same command are equivalent."""

from harness.command_stream import TTL_COMMANDS

# Maximum time between the moments when the first and the second server receive a command, even on a
# busy machine.
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
        # For a copied small integer, our server answers OBJECT REFCOUNT with
        # SHARED_INTEGER_REFCOUNT, and Redis answers 1.
        return {ours, theirs} == {1, SHARED_INTEGER_REFCOUNT}
    if name in TTL_COMMANDS:
        return times_match(name, ours, theirs)
    if not (isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs)):
        return False
    if name == b"KEYS":
        return sorted(ours) == sorted(theirs)
    if name == b"EXEC":
        # In a transaction, Redis also counts the queued argument as a reference to the object. So
        # replies to OBJECT REFCOUNT may differ.
        return all(
            type(a) is type(b)
            and (a == b or queued_name == b"OBJECT" or values_match(queued_name, a, b, []))
            for queued_name, a, b in zip(queued, ours, theirs)
        )
    return False
