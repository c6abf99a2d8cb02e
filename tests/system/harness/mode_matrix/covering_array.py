# SPDX-License-Identifier: MIT
"""Computes a covering array of few rows. For each choice of `strength` parameters, every
combination of their values is in a row.
"""

import itertools
import math


def covering_array(parameters, strength, rng, is_possible=lambda row: True):
    """Returns rows, each a tuple with one value of every parameter. For each choice of `strength`
    parameters, every combination of their values is in a row, unless no possible row has this
    combination. is_possible() returns whether a row is possible.

    The algorithm is greedy. For each missing combination, it adds the row that contains this
    combination and the most other missing combinations. Sets of parameters with the most
    combinations come first, because they need the most rows.
    """
    columns = list(itertools.combinations(range(len(parameters)), strength))
    columns.sort(key=lambda chosen: -math.prod(len(parameters[i]) for i in chosen))

    def combinations(row):
        return [(chosen, tuple(row[i] for i in chosen)) for chosen in columns]

    possible = [row for row in itertools.product(*parameters) if is_possible(row)]
    rng.shuffle(possible)
    rows_with = {}
    for row in possible:
        for combination in combinations(row):
            rows_with.setdefault(combination, []).append(row)
    missing = set(rows_with)
    array = []
    for wanted in sorted(rows_with, key=lambda combination: columns.index(combination[0])):
        if wanted in missing:
            best = max(
                rows_with[wanted],
                key=lambda row: sum(combination in missing for combination in combinations(row)),
            )
            array.append(best)
            missing.difference_update(combinations(best))
    return array
