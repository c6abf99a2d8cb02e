# SPDX-License-Identifier: MIT
"""CellTest: a test case with a method for each cell of a mode matrix."""

import functools
import itertools
import pathlib
import sys
import tempfile

from harness import ROOT, SERVER, Process, seed_from_environment
from harness.mode_matrix import Cell, refusal_of
from harness.mode_matrix.cell_run import CellRun
from harness.replication import ReplicaTest
from harness.tls_files import TlsFiles

SEED = seed_from_environment()


class CellTest(ReplicaTest):
    PARAMETERS = {}

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
        path = pathlib.Path(sys.argv[0]).absolute().relative_to(ROOT)
        with self.subTest(repeat=f"BLOOMERY_SEED={SEED} {path} {type(self).__name__}.test_{cell}"):
            run = CellRun(self, cell, self.PARAMETERS, SEED, refusal_of(cell))
            run.event.run(run)

    @classmethod
    def add_test_methods(cls):
        for values in itertools.product(*cls.PARAMETERS.values()):
            cell = Cell(*values)
            setattr(cls, f"test_{cell}", cls._test_method(cell))

    @staticmethod
    def _test_method(cell):
        return lambda test: test.run_cell(cell)
