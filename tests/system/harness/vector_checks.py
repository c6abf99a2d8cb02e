# SPDX-License-Identifier: MIT
"""Checks that a server which has loaded a file of tests/vectors replies like the file's writer."""

from harness import ROOT

VECTORS = ROOT / "tests" / "vectors"
FIELDS = ("CAPACITY", "FILTERS", "ITEMS", "EXPANSION")
BINARY_KEY = b"bin\x00key\xff"


def expected_filters(vendor):
    """Reads expected.txt. Returns {name of the filter: (values of FIELDS in BF.INFO, numbers n for
    which the item absent:n is a false positive)}.
    """
    filters = {}
    for line in (VECTORS / vendor / "expected.txt").read_text().splitlines():
        name, *figures = line.split()
        figures = [int(figure) for figure in figures]
        filters[BINARY_KEY if name == "binkey" else name] = (figures[:4], figures[4:])
    return filters


class VectorChecks:
    """Mixin for a ServerTest. Checks that a server has loaded a file of another server correctly.
    """

    def check_filter(self, connection, name, figures, absent):
        answers = [connection.call("BF.INFO", name, field)[0] for field in FIELDS]
        self.assertEqual([answer or 0 for answer in answers], figures, name)
        items = [f"absent:{number}" for number in range(1000)]
        found = connection.call("BF.MEXISTS", name, *items)
        self.assertEqual([number for number, bit in enumerate(found) if bit], absent, name)

    def check_items(self, connection):
        for name, prefix, count in (("tiny", "item", 50), ("scaled", "scaled", 200),
                                    ("nonscaling", "ns", 50), ("wide", "wide", 1000)):
            items = [f"{prefix}:{number}" for number in range(count)]
            self.assertEqual(connection.call("BF.MEXISTS", name, *items), [1] * count, name)

    def check_all(self, connection, vendor, changed=()):
        for name, (figures, absent) in expected_filters(vendor).items():
            if name not in changed:
                self.check_filter(connection, name, figures, absent)
        self.check_items(connection)
        self.assertEqual(connection.call("GET", "str"), b"hello world")
        self.assertEqual(connection.call("GET", "bigint"), b"9223372036854775807")
        self.assertEqual(connection.call("PEXPIRETIME", "ttlbf"), 4102444800000)
        self.assertEqual(connection.call("GETBIT", "bitmap", "65535"), 1)
        connection.call("SELECT", "1")
        self.assertEqual(connection.call("BF.CARD", "db1filter"), 5)
        self.assertEqual(connection.call("GET", "db1str"), b"one")
