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

import functools
import itertools
import pathlib
import random
import tempfile
import unittest

from harness import ROOT, SERVER, Process, seed_from_environment
from harness.counts import count
from harness.mode_matrix import PARAMETERS, Cell, choose_cells, refusal_of
from harness.mode_matrix.cell_run import CellRun
from harness.replication import ReplicaTest
from harness.tls_files import TlsFiles

STRENGTH = count("MODE_MATRIX_STRENGTH")
SEED = seed_from_environment()


class ModeMatrixTest(ReplicaTest):
    def launch(self, *options, **more):
        """Starts a server without waiting until it is ready."""
        return Process(SERVER, self._defaults(options), **more)

    @classmethod
    @functools.cache
    def tls_files(cls):
        folder = tempfile.TemporaryDirectory(prefix="bloomery-tls-")
        cls.addClassCleanup(folder.cleanup)
        files = TlsFiles(folder.name)
        files.make_certificate("client")
        return files

    def run_cell(self, cell):
        path = pathlib.Path(__file__).absolute().relative_to(ROOT)
        with self.subTest(repeat=f"BLOOMERY_SEED={SEED} {path} {type(self).__name__}.test_{cell}"):
            run = CellRun(self, cell, PARAMETERS, SEED, refusal_of(cell))
            run.event.run(run)


def test_method(cell):
    return lambda test: test.run_cell(cell)


def add_test_methods():
    for values in itertools.product(*PARAMETERS.values()):
        cell = Cell(*values)
        setattr(ModeMatrixTest, f"test_{cell}", test_method(cell))


def load_tests(_loader, _tests, _pattern):
    cells = choose_cells(STRENGTH, random.Random(SEED))
    print(f"{len(cells)} cells", flush=True)
    return unittest.TestSuite(ModeMatrixTest(f"test_{cell}") for cell in sorted(cells))


add_test_methods()

if __name__ == "__main__":
    unittest.main(verbosity=2)
