#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests a cluster whose leader fails or restarts. Each test is a cell of the mode matrix: one
configuration, one way to log in, one kind of values and one event.

A failed test prints the command that repeats the test. If the command line names no test, only some
of the cells run. These cells together contain each value of each parameter.
"""

import random
import unittest

from harness.etcd import EtcdTest
from harness.mode_matrix import PARAMETERS, TOO_BIG, Excluded, choose_cells
from harness.mode_matrix.cell_case import SEED, CellTest
from harness.mode_matrix.cluster_events import CLUSTER_EVENTS

RULES = [
    TOO_BIG,
    (Excluded("a cluster has one database"), {"configuration": ["databases"]}),
    (Excluded("an emulated cluster is another mode"), {"configuration": ["cluster"]}),
    (Excluded("the mode matrix moves filters to huge pages"), {"configuration": ["huge_pages"]}),
    (Excluded("the mode matrix promotes replicas with these kinds"),
     {"kind": ["regions", "redisbloom_layout", "valkey_bloom_layout", "fingerprints_layout",
               "regions_layout"]}),
]  # fmt: skip


class ClusterMatrixTest(EtcdTest, CellTest):
    PARAMETERS = {**PARAMETERS, "event": CLUSTER_EVENTS}


def load_tests(_loader, _tests, _pattern):
    cells = choose_cells(1, random.Random(SEED), ClusterMatrixTest.PARAMETERS, RULES)
    print(f"{len(cells)} cells", flush=True)
    return unittest.TestSuite(ClusterMatrixTest(f"test_{cell}") for cell in sorted(cells))


ClusterMatrixTest.add_test_methods()

if __name__ == "__main__":
    unittest.main(verbosity=2)
