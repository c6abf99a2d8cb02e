# SPDX-License-Identifier: MIT
"""Preloads libraries into a server (LD_PRELOAD). They replace functions of the system, such as the
clock and fork().

  self.start_server(prefix=process_faults(FORKS_MAX=1))

  clock = SimulatedClock(START_MS)
  self.addCleanup(clock.close)
  self.start_server(prefix=clock.prefix)

Environment:
  BLOOMERY_SIMULATED_CLOCK  path of the library built from tests/support/simulated_clock.cpp
  BLOOMERY_PROCESS_FAULTS   path of the library built from tests/support/process_faults.cpp
"""

import mmap
import os
import pathlib
import struct
import tempfile

from harness.settings import SERVER


def preloaded(variable, target, settings):
    """Returns the words to put before a command, so that it preloads the library of `target` with
    these settings.
    """
    usual = SERVER.parent / "tests" / f"lib{target}.so"
    library = pathlib.Path(os.environ.get(variable, usual)).absolute()
    if not library.exists():
        raise AssertionError(f"{library} is missing: build {target}")
    words = [f"{name}={value}" for name, value in settings.items()]
    return ("env", f"LD_PRELOAD={library}", *words)


def process_faults(**settings):
    """Returns the words to put before a command, so that it preloads the library of
    tests/support/process_faults.cpp with these settings.
    """
    return preloaded("BLOOMERY_PROCESS_FAULTS", "process_faults", settings)


class SimulatedClock:
    """The simulated wall clock of all servers whose command line begins with `prefix`."""

    def __init__(self, now_ms):
        self.directory = tempfile.TemporaryDirectory(prefix="bloomery-clock-")
        path = pathlib.Path(self.directory.name) / "clock"
        path.write_bytes(bytes(8))
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 8)
        self.set(now_ms)
        self.prefix = preloaded(
            "BLOOMERY_SIMULATED_CLOCK", "simulated_clock", {"SIMULATED_CLOCK": path}
        )

    def close(self):
        self.directory.cleanup()

    def set(self, now_ms):
        self.now_ms = int(now_ms)
        self.memory[:] = struct.pack("<q", self.now_ms)

    def advance(self, milliseconds):
        self.set(self.now_ms + milliseconds)
