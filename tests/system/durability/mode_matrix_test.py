#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every two features of the server meet in a test. The features are configurations, users, kinds of
values, numbers of threads, and events such as a restart or a promotion.

Each cell is a test of its own. A failure names the command that repeats it, such as
  BLOOMERY_SEED=1 tests/system/durability/mode_matrix_test.py \\
    ModeMatrixTest.test_tls_acl_bitmap_4_promotion

Without a name the cells of a covering array run. harness/mode_matrix has the rows of the matrix.

Environment:
  BLOOMERY_MODE_MATRIX_STRENGTH  how many features meet in every combination
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
