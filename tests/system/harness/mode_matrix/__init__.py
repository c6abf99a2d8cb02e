# SPDX-License-Identifier: MIT
"""The mode matrix tests every pair of server features together.

A cell is one test of the matrix: a tuple with one value of each parameter. It starts servers with
the cell's configuration, and runs the cell's event on them, such as a restart. A model of the
cell's kind of values knows which data the servers must hold.

tests/system/durability/mode_matrix_test.py runs the cells without a cluster.
tests/system/cluster/cluster_matrix_test.py runs the cells whose event is in a cluster.

| a new … | is one line in |
| --- | --- |
| configuration of the server, way to log in | configurations.py |
| kind of value | kinds.py |
| event | events.py, in a cluster cluster_events.py |
| pair that must be refused, or cannot meet | the rules below |
"""

import collections
import dataclasses
import itertools

from harness.mode_matrix.configurations import ACCESSES, CONFIGURATIONS
from harness.mode_matrix.covering_array import covering_array
from harness.mode_matrix.events import EVENTS
from harness.mode_matrix.kinds import FILTERS, KINDS, STRINGS

PARAMETERS = {
    "configuration": CONFIGURATIONS,
    "access": ACCESSES,
    "kind": KINDS,
    "threads": {"1": None, "4": None},
    "event": EVENTS,
}


class Cell(collections.namedtuple("Cell", PARAMETERS)):
    def __str__(self):
        return f"{self.configuration}_{self.access}_{self.kind}_{self.threads}_{self.event}"


@dataclasses.dataclass(frozen=True)
class Refused:
    """A rule: the server must reject the event. `pattern` matches the error reply or a line of the
    leader's log.
    """

    pattern: str


@dataclasses.dataclass(frozen=True)
class Excluded:
    """A rule: the matrix has no cell with these values. `reason` says why."""

    reason: str


# The rule for values that are too big for the limits of a configuration.
TOO_BIG = (
    Excluded("the value needs more memory than these limits allow"),
    {"kind": ["big_string"], "configuration": ["eviction", "replica_eviction", "client_eviction"]},
)

# A rule names parameters, with some values of each. It applies to a cell if the cell has one of the
# named values of every named parameter. If no rule applies to a cell, the event must keep all data.
# The word "Awaits" in a rule marks a known fault. When the fault is fixed, delete the rule.
RULES = [
    (Refused("REPLICAOF not allowed"),
     {"configuration": ["cluster"], "event": ["promotion"]}),
    (Refused("FAILOVER not allowed"),
     {"configuration": ["cluster"], "event": ["handover"]}),
    (Excluded("BF.SCANDUMP is for filters only"),
     {"kind": STRINGS, "event": ["load_chunks"]}),
    TOO_BIG,
    (Refused("tls-replication forbids"), {"configuration": ["tls"], "event": ["migrate"]}),
    (Refused("Target .*ERR unknown command"),
     {"configuration": ["renamed"], "event": ["migrate"]}),
    (Refused("Replica .* is refused: .*filters of the layout"),
     {"kind": FILTERS, "event": ["redis_replica"]}),
    (Excluded("a redis-server cannot hold the filter that moves to huge pages"),
     {"configuration": ["huge_pages"], "event": ["redis_replica"]}),
]  # fmt: skip


def matches(cell, condition):
    return all(getattr(cell, name) in values for name, values in condition.items())


def rules_of(cell, rules):
    return [outcome for outcome, condition in rules if matches(cell, condition)]


def refusal_of(cell):
    """Returns the pattern of the error that must end the event; None if the event must succeed."""
    return next((r.pattern for r in rules_of(cell, RULES) if isinstance(r, Refused)), None)


def choose_cells(strength, rng, parameters=PARAMETERS, rules=RULES):
    """Returns cells to test. For each choice of `strength` parameters, every allowed combination of
    their values is in at least one cell. Each combination that a Refused rule names gets a separate
    cell. Its event is rejected and may end early, so the cell tests no other combination.
    """
    names = [list(values) for values in parameters.values()]
    array = covering_array(names, strength, rng, lambda row: not rules_of(Cell(*row), rules))
    cells = [Cell(*row) for row in array]
    every_cell = [Cell(*row) for row in itertools.product(*names)]
    for rule in rules:
        outcome, condition = rule
        if isinstance(outcome, Refused):
            for values in itertools.product(*condition.values()):
                pair = {name: [value] for name, value in zip(condition, values)}
                cells.append(rng.choice([
                    cell for cell in every_cell
                    if matches(cell, pair) and rules_of(cell, rules) == [outcome]
                ]))  # fmt: skip
    return cells
