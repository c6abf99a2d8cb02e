# SPDX-License-Identifier: MIT
"""Fills filters so that the server can move them to huge pages, and waits until it has."""

import functools

from harness.info import info
from harness.resp import encode
from harness.waiting import wait_until

PIECE_BYTES = 2 << 20
PAGE_BYTES = 4096
UNSUPPORTED = "MADV_COLLAPSE"  # the line that a server logs once if its kernel refuses the call
BATCH = 1000


@functools.cache
def _item_batches(key, count):
    """Returns the encoded commands that add `count` items, and the number of commands."""
    starts = range(0, count, BATCH)
    commands = [encode("BF.MADD", key, *range(start, start + BATCH)) for start in starts]
    return b"".join(commands), len(commands)


def fill(connection, key, capacity):
    """Creates a native filter and adds so many items that every page of its array is touched. An
    item touches a random page; so 20 items for each page leave none untouched.
    """
    words = (capacity, "NONSCALING", "LAYOUT", "native")
    assert connection.call("BF.RESERVE", key, "0.01", *words) == b"OK"
    pages = capacity * 10 // 8 // PAGE_BYTES
    data, count = _item_batches(key, 20 * pages)
    connection.send(data)
    for _ in range(count):
        connection.read_reply()


def expect_items(test, connection, key, count):
    for start in range(0, count, BATCH):
        found = connection.call("BF.MEXISTS", key, *range(start, start + BATCH))
        test.assertEqual(found, [1] * BATCH)


def memory_field(connection, name):
    return int(info(connection, "memory")[name])


def huge_bytes(connection):
    return memory_field(connection, "mem_filter_arrays_huge_bytes")


def is_refused(server):
    """Returns whether the server has logged that its kernel cannot collapse pages."""
    return any(UNSUPPORTED in line for line in server.log)


def wait_for_huge_bytes(server, connection, wanted):
    """Waits until `wanted` bytes are in huge pages. Returns False if the server's log says that the
    kernel does not support MADV_COLLAPSE. Each check sets filter-huge-pages to `no` and then to
    `auto`, which wakes the server's thread that moves arrays to huge pages. Otherwise this thread
    visits all arrays only every 5 to 30 seconds.
    """

    def is_done():
        for mode in ("no", "auto"):
            connection.call("CONFIG", "SET", "filter-huge-pages", mode)
        return is_refused(server) or huge_bytes(connection) >= wanted

    wait_until(is_done, f"{wanted} bytes in huge pages")
    return not is_refused(server)
