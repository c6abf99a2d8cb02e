# SPDX-License-Identifier: MIT
"""Waiting for a condition. A test may wait in no other way."""

import time


def wait_until_loaded(connection):
    wait_until(lambda: connection.call("PING") == b"PONG", 60, "loading")


def wait_until(condition, timeout_s=10, what="condition"):
    """Polls until condition() is true. `what` may be a function that tells it at the end."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            told = what() if callable(what) else what
            raise AssertionError(f"{told} did not come true within {timeout_s} s")
        time.sleep(0.02)
