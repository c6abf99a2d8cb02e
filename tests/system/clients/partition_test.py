#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests the programs of docs/cluster.md that split a filter into partitions. In every language,
they must find an item in the same partition.
"""

import pathlib
import tempfile
import unittest
import zlib

from harness import ServerTest
from harness.pages import PORT, PROGRAMS, blocks_of, run_program

PARTITIONS = 64
# Capacity of each of the 64 filters that share a million items: the mean number of items, 15625,
# plus 4.5 standard deviations. The standard deviation is the square root of the mean.
CAPACITY = 16188


class PartitionTest(ServerTest):
    def test_programs_agree(self):
        server = self.start_server("--cluster-enabled", "emulated")
        connection = self.enterContext(server.connect())
        programs = [block for block in blocks_of("docs/cluster.md") if block[0] in PROGRAMS]
        self.assertEqual([language for language, _ in programs],
                         ["python", "javascript", "php", "ruby"])  # fmt: skip
        for language, text in programs:
            with self.subTest(language), tempfile.TemporaryDirectory() as folder:
                for _ in range(2):  # in the second run the filters already exist
                    printed = run_program(
                        pathlib.Path(folder), language, text.replace(PORT, str(server.port))
                    )
                    self.check_output(connection, printed)

    def check_output(self, connection, printed):
        lines = [line.split() for line in printed.splitlines()]
        self.assertEqual([line[0] for line in lines], ["alice", "bär"])
        for item, key, exists in lines:
            partition = zlib.crc32(item.encode()) % PARTITIONS
            self.assertEqual(key[key.index(":") :], f":{{{partition}}}")
            self.assertEqual(exists.lower().replace("true", "1"), "1")
            self.assertEqual(connection.call("BF.EXISTS", key, item), 1)
            self.assertEqual(connection.call("BF.INFO", key, "CAPACITY"), [CAPACITY])
        name = lines[0][1].split(":")[0]
        self.assertEqual(len(connection.call("KEYS", f"{name}:*")), PARTITIONS)


if __name__ == "__main__":
    unittest.main()
