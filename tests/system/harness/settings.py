# SPDX-License-Identifier: MIT
"""Settings of a test run, from its environment.

  BLOOMERY_SERVER        the program under test (default build/release/bloomery-server).
  BLOOMERY_CLUSTER_TOOL  bloomery-cluster of the same build.
  BLOOMERY_SANITIZED     set if the program is built with a sanitizer.
  BLOOMERY_SEED          seed of the random tests, to replay a run.
  BLOOMERY_TEST_LIMIT_S  seconds until ctest ends the test. The test prints its stacks 10 s earlier.
  BLOOMERY_NODE_MODULES  the folder of the Node packages (default build).
"""

import faulthandler
import os
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
SYSTEM_TESTS = ROOT / "tests" / "system"
SERVER = pathlib.Path(
    os.environ.get("BLOOMERY_SERVER", ROOT / "build" / "release" / "bloomery-server")
).absolute()
CLUSTER_TOOL = pathlib.Path(
    os.environ.get("BLOOMERY_CLUSTER_TOOL", SERVER.parent / "bloomery-cluster")
).absolute()
# True if the tests run against redis-server, which shows whether the test or our server is wrong.
SERVER_IS_REDIS = SERVER.name.startswith("redis")
# True if the server is built with a sanitizer. Then it is many times slower, and its memory
# includes the sanitizer's quarantine and shadow.
SANITIZED = "BLOOMERY_SANITIZED" in os.environ
if limit_s := os.environ.get("BLOOMERY_TEST_LIMIT_S"):
    faulthandler.dump_traceback_later(int(limit_s) - 10)


def seed_from_environment():
    """Returns the seed of this run, and prints it so that a failure can be replayed."""
    seed = int(os.environ.get("BLOOMERY_SEED", random.randrange(1 << 32)))
    print(f"BLOOMERY_SEED={seed}", flush=True)
    return seed


def module_command(name):
    """Returns the command line that runs a module of this package as a program."""
    return ["env", f"PYTHONPATH={SYSTEM_TESTS}", sys.executable, "-m", f"harness.{name}"]
