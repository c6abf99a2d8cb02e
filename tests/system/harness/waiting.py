# SPDX-License-Identifier: MIT
"""The only module of the system tests that waits.

A test should use wait_until(), which waits for a condition that the test can observe.
let_time_pass() is for the rare test whose subject is time, and pace() for programs that make load.
No other module sleeps: scripts/check_tree.py checks that.

Environment:
  BLOOMERY_SLOW  a factor for all deadlines, for machines that are slow (default 1)
"""

import os
import time

SLOW = float(os.environ.get("BLOOMERY_SLOW", "1"))
# The deadline is so long that a condition which is still false after it will never become true.
DEADLINE_S = 60 * SLOW
POLL_EVERY_S = 0.02


def wait_until(condition, what="the condition", *, timeout_s=60, poll_every_s=POLL_EVERY_S):
    """Polls until condition() is true. `what` describes the condition in the error message; it may
    be a function that returns the description."""
    limit_s = timeout_s * SLOW
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            description = what() if callable(what) else what
            raise AssertionError(f"{description} did not come true within {limit_s:g} s")
        time.sleep(poll_every_s)


def wait_until_loaded(connection):
    wait_until(lambda: connection.call("PING") == b"PONG", "loading")


def let_time_pass(seconds, why):
    """Sleeps, because the test is about time. `why` says what may happen during the sleep.

    REQUIRES: the test's later assertions also hold if the sleep lasts far longer than `seconds`.
    """
    assert why
    time.sleep(max(0.0, seconds))


def pace(seconds):
    """Sleeps between two requests of a load generator."""
    time.sleep(max(0.0, seconds))
