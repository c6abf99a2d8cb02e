#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests every pair of server features together. The features are configurations, users, kinds of
values, numbers of threads, and events such as a restart or a promotion.

Each combination of features (a cell) is a separate test. A failure prints the command that repeats
the test, such as
  BLOOMERY_SEED=1 tests/system/durability/mode_matrix_test.py \\
    ModeMatrixTest.test_tls_acl_bitmap_4_promotion

Without a test name, the program runs a covering array: few cells that contain every pair of
features. harness/mode_matrix defines the features.

Environment:
  BLOOMERY_MODE_MATRIX_STRENGTH  number of features tested in every combination; 2 means pairs
"""

import random
import unittest

from harness.counts import count
from harness.mode_matrix import PARAMETERS, choose_cells
from harness.mode_matrix.cell_case import SEED, CellTest

STRENGTH = count("MODE_MATRIX_STRENGTH")


class ModeMatrixTest(CellTest):
    PARAMETERS = PARAMETERS


def load_tests(_loader, _tests, _pattern):
    cells = choose_cells(STRENGTH, random.Random(SEED))
    print(f"{len(cells)} cells", flush=True)
    return unittest.TestSuite(ModeMatrixTest(f"test_{cell}") for cell in sorted(cells))


ModeMatrixTest.add_test_methods()

if __name__ == "__main__":
    unittest.main(verbosity=2)
