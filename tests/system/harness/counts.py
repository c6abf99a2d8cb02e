# SPDX-License-Identifier: MIT
"""One table of the sizes of all tests, such as numbers of random commands. The environment can
override them.

If BLOOMERY_TIER is `long`, tests use the column `long`, else the column `default`, which is for the
test run of every change. BLOOMERY_NAME=n overrides the count NAME. A server with a sanitizer is
many times slower, so its tests use smaller counts. In the tier `long` these are in the column
`default`. Otherwise they are in the column `sanitized`, or in `default` if that is empty.
"""

import dataclasses
import os

from harness.settings import SANITIZED


@dataclasses.dataclass(frozen=True)
class Count:
    default: float
    long: float
    meaning: str
    sanitized: float = None


COUNTS = {
    # Numbers of random commands and inputs, mostly to compare with redis-server.
    "DIFFERENTIAL_COMMANDS": Count(100_000, 500_000, "random commands on keys", sanitized=40_000),
    "SERVER_COMMANDS": Count(10_000, 200_000, "random commands about the server", sanitized=4_000),
    "CLUSTER_COMMANDS": Count(3_000, 60_000, "random commands to three nodes of a cluster"),
    "PUBSUB_STEPS": Count(4_000, 60_000, "steps of random subscribers and publishers"),
    "TRACKING_STEPS": Count(2_000, 40_000, "steps of random clients that track keys"),
    "TRACKING_WRITES": Count(1_500, 50_000, "writes beside clients that keep caches"),
    "NOTIFICATION_COMMANDS": Count(20_000, 300_000, "random commands with key events"),
    "WHOLE_FILTER_ROUNDS": Count(4, 100, "kills beside commands on whole filters"),
    "SECURITY_ROUNDS": Count(2_000, 100_000, "random hostile inputs, also of the C++ tests"),
    # Numbers of faults: kills, power cuts, failing calls.
    "KILL_CYCLES": Count(8, 300, "kill -9 and restart under load", sanitized=5),
    "POWER_CUTS": Count(5, 100, "power cuts with appendfsync always"),
    "POWER_CUTS_EVERYSEC": Count(2, 20, "power cuts with appendfsync everysec"),
    "SHUTDOWN_CYCLES": Count(3, 60, "shutdowns under load, of a server and of a leader"),
    "FAULT_ROUNDS": Count(1, 20, "repetitions of each fault of the disk"),
    "FAULT_CALLS": Count(1, 50, "failing calls of each kind during a rewrite or a snapshot"),
    "MODE_MATRIX_STRENGTH": Count(2, 3, "features that meet in every combination of their values"),
    "DAMAGE_TAILS": Count(60, 2_000, "truncated files", sanitized=20),
    "DAMAGE_FLIPS": Count(150, 5_000, "files with a flipped bit", sanitized=40),
    "LINK_CUTS": Count(15, 500, "cuts of the link between a leader and its replica"),
    "HANDOVERS": Count(3, 60, "FAILOVER commands under load"),
    "ROLLING_RESTARTS": Count(3, 100, "restarts of all members of a cluster, one by one"),
    "PROMOTION_KILLS": Count(2, 50, "killed leaders whose replica is promoted"),
    "FAILOVERS": Count(1, 10, "failovers by redis-sentinel"),
    "SOAK_MINUTES": Count(0.25, 5.0, "minutes of every load; memory is checked from 1"),
    # Two tests in C++ use these counts: cluster_simulation_test.cpp and durability_model_test.cpp.
    # If the environment sets no count, the two tests use defaults of their own.
    "MODEL_RUNS": Count(1_000, 10_000, "seeded runs of a log whose disk fails"),
    "SIMULATION_RUNS": Count(1_000, 10_000, "seeded runs of a cluster in virtual time"),
    # Sizes of filters and of other data.
    "ABSENT_ITEMS": Count(200_000, 1_000_000, "probes of an error rate", sanitized=20_000),
    "FILTER_MB": Count(128, 512, "size of the filter of a full sync"),
    "SPARSE_CAPACITY": Count(200_000_000, 2_000_000_000, "capacity of a filter that stays empty"),
    "SPARSE_ITEMS": Count(2_000, 2_000, "items of a filter that stays nearly empty"),
    "IDLE_CONNECTIONS": Count(1_500, 10_000, "connections that do nothing"),
    "STORY_SCALE": Count(0.01, 0.2, "size of the users' stories, 1 for full size"),
}


IS_LONG = os.environ.get("BLOOMERY_TIER") == "long"


def count(name):
    """Returns the count `name` for this test run, as an int or a float like its default."""
    row = COUNTS[name]
    if override := os.environ.get(f"BLOOMERY_{name}"):
        return type(row.default)(override)
    if not IS_LONG:
        return row.sanitized if SANITIZED and row.sanitized is not None else row.default
    return row.default if SANITIZED else row.long
