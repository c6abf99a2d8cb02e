# SPDX-License-Identifier: MIT
"""Prints the output of `check_tree.py --numbers`: the sizes of folders and classes, the lengths of
include chains, and numbers about the tests.
"""

import tree_facts

TOP_FOLDERS = (*tree_facts.PRODUCT_FOLDERS, "tests", "bench")
SHOWN = 5


def print_numbers(tree):
    product = [path for path in tree.sources if path.parts[0] in tree_facts.PRODUCT_FOLDERS]
    graph = {str(path): [own for own, _, _ in tree.includes[path] if own] for path in product}
    print_folders(tree)
    print_units(tree)
    print_includes(graph)
    print_classes(tree)
    print_tests(tree)


def row(name, *figures):
    print(f"  {name:<48}" + "".join(f"{figure:>9}" for figure in figures))


def lines_of(tree, paths):
    return sum(tree.texts[path].count("\n") for path in paths)


def print_folders(tree):
    print("folders" + " " * 47 + "files    lines")
    for folder in TOP_FOLDERS:
        paths = [path for path in tree.sources if path.parts[0] == folder]
        row(f"{folder}/", len(paths), lines_of(tree, paths))
    paths = [
        path for path in tree.sources
        if path.parts[0] == "server" and path.parts[1] in ("net", "server.cpp")
    ]  # fmt: skip
    row("server/: net/ and server.cpp", len(paths), lines_of(tree, paths))


def print_units(tree):
    folders = tree_facts.units_of_folders(tree.files)
    print("units per folder (a unit is a .h, a .cpp or both)")
    for folder in sorted(folders, key=lambda folder: (-len(folders[folder]), folder)):
        row(f"{folder}/", len(folders[folder]))


def print_includes(graph):
    chain = tree_facts.longest_chain(graph)
    print(f"longest include chain: {len(chain)} files")
    for path in chain:
        print(f"  {path}")
    pulled = {
        source: len(tree_facts.headers_of(graph, source))
        for source in graph if source.endswith(".cpp")
    }  # fmt: skip
    biggest = sorted(pulled, key=lambda source: (-pulled[source], source))
    print("own headers that a source pulls in")
    for source in biggest[:SHOWN]:
        row(source, pulled[source])
    others = [source for source in biggest if source not in tree_facts.COMPOSERS]
    print(f"  most without {' and '.join(tree_facts.COMPOSERS)}: {pulled[others[0]]} ({others[0]})")


def print_classes(tree):
    sizes = tree.class_sizes()
    print(f"members per class ({len(sizes)} classes)")
    for name in sorted(sizes, key=lambda name: (-sizes[name], name))[:SHOWN]:
        row(name.partition(" ")[2], sizes[name])


def print_tests(tree):
    with_source = [
        unit for unit, files in tree_facts.units(tree.files).items()
        if any(path.suffix == ".cpp" for path in files)
    ]  # fmt: skip
    untested = tree_facts.units_without_test(tree.files)
    tested = len(with_source) - len(untested)
    print(f"units with a source: {len(with_source)}, with a test of that name: {tested}")
    print("without one:")
    for unit in untested:
        print(f"  {unit}")
    count, with_server = tree_facts.test_cases(tree.texts)
    share = 100 * with_server / count
    print(f"test cases: {count}, that start a server: {with_server} ({share:.1f} %)")
