#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that each library of server/ uses only symbols of itself and of the libraries below it.

The programs are linked with all libraries at once. The linker therefore accepts a call from a lower
library to a higher one, which this script reports.
Usage: scripts/check_links.py BUILD_FOLDER
The last line is `N libraries, M problems`. The exit status is 1 if there are problems.
"""
import pathlib
import subprocess
import sys

import server_order

UNDEFINED = "U"


def symbols(archive):
    """Returns the sets of defined and of undefined symbols of an archive."""
    defined, undefined = set(), set()
    text = subprocess.run(["nm", "--extern-only", "--format=posix", str(archive)],
                          capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        if not rest:
            continue  # the name of an object file
        kind = rest.split()[0]
        if kind == UNDEFINED:
            undefined.add(name)
        elif kind not in "wv":
            defined.add(name)
    return defined, undefined - defined


def faults(folder, allowed):
    """Returns a line for each symbol that a library uses but that is defined in a library which the
    first library may not use.

    `allowed` maps a library to the set of libraries that it may use. The archives are in `folder`.
    """
    found = {name: symbols(folder / f"libbloomery_{name}.a") for name in allowed}
    lines = []
    for name, below in allowed.items():
        reachable = set().union(*(found[low][0] for low in (name, *below)))
        for other in allowed.keys() - below - {name}:
            for symbol in sorted((found[name][1] & found[other][0]) - reachable):
                text = subprocess.run(["c++filt", symbol], capture_output=True, text=True,
                                      check=True).stdout.strip()
                lines.append(f"{name} may not use {other}: {text}")
    return sorted(lines)


def main():
    if len(sys.argv) != 2:
        raise SystemExit("usage: scripts/check_links.py BUILD_FOLDER")
    libraries = server_order.LIBRARIES
    allowed = {**libraries, "server": set(libraries)}
    lines = faults(pathlib.Path(sys.argv[1]) / "server", allowed)
    for line in lines:
        print(line)
    print(f"{len(allowed)} libraries, {len(lines)} problems")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
