#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes tests/vectors/bloomery: filters in our own formats, to test that later versions can load
them. The script does not change existing files: a format that changes gets a new name.

Usage: BLOOMERY_SERVER=build/release/bloomery-server tests/vectors/make_bloomery.py [NAME...]

Each filter has a DUMP in dump/NAME.bin and the chunks of BF.SCANDUMP in scandump/NAME/NN.bin. A
line of expected.txt has a filter's name, capacity, layers, items, expansion (0: none) and false
positives. These are the numbers n from 0 to 999 for which the filter finds absent:n. A line of
items.txt has a filter's name, the number of its first item, and the number after its last item.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "system"))
from harness import SERVER, Process  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent / "bloomery"
ADD, DELETE = "BF.MADD", "BF.DEL"
LANES = ("LAYOUT", "native-2")
FAR = 100_000_000  # seconds, so long that no generation rotates while the tests are used

# Maps a filter's name to its arguments of BF.RESERVE, its steps, and the range of the items that it
# must have at the end. A step is a command with a range of items. A range is the first number and
# the number after the last.
FILTERS = {
    "native": (("0.01", 200), [(ADD, 0, 150)], (0, 150)),
    "native-grown": (("0.01", 50, "EXPANSION", 3), [(ADD, 0, 400)], (0, 400)),
    "native-tightening": (("0.05", 50, "TIGHTENING", "0.9"), [(ADD, 0, 200)], (0, 200)),
    "native-fixed": (("0.02", 100, "NONSCALING"), [(ADD, 0, 90)], (0, 90)),
    "lanes": (("0.01", 200, *LANES), [(ADD, 0, 150)], (0, 150)),
    "lanes-grown": (("0.01", 50, "EXPANSION", 3, *LANES), [(ADD, 0, 400)], (0, 400)),
    "lanes-tightening": (("0.05", 50, "TIGHTENING", "0.9", *LANES), [(ADD, 0, 200)], (0, 200)),
    "lanes-strict": (("1e-6", 300, "NONSCALING", *LANES), [(ADD, 0, 300)], (0, 300)),
    "lanes-window": (("0.01", 40, "WINDOW", FAR, *LANES), [(ADD, 0, 200)], (0, 200)),
    "fingerprints": (("0.01", 200, "DELETABLE"), [(ADD, 0, 150)], (0, 150)),
    "fingerprints-strict": (("1e-6", 100, "DELETABLE"), [(ADD, 0, 100)], (0, 100)),
    "fingerprints-grown": (("0.01", 50, "DELETABLE"), [(ADD, 0, 400)], (0, 400)),
    "fingerprints-deleted": (
        ("0.01", 50, "DELETABLE"), [(ADD, 0, 400), (DELETE, 300, 400)], (0, 300)
    ),  # fmt: skip
    "fingerprints-fixed": (("0.01", 100, "DELETABLE", "NONSCALING"), [(ADD, 0, 90)], (0, 90)),
    "regions": (("0.01", 200, "DELETABLE", "REGIONS", 10), [(ADD, 0, 150)], (0, 150)),
    "regions-of-one": (("0.01", 200, "DELETABLE", "REGIONS", 1), [(ADD, 0, 100)], (0, 100)),
    "regions-grown": (("0.01", 50, "DELETABLE", "REGIONS", 4), [(ADD, 0, 400)], (0, 400)),
    "regions-deleted": (
        ("0.01", 50, "DELETABLE", "REGIONS", 10), [(ADD, 0, 400), (DELETE, 300, 400)], (0, 300)
    ),  # fmt: skip
    "window": (("0.01", 200, "WINDOW", FAR), [(ADD, 0, 40)], (0, 40)),
    "window-grown": (("0.01", 40, "WINDOW", FAR, "GENERATIONS", 2), [(ADD, 0, 200)], (0, 200)),
    "window-refresh": (("0.01", 200, "WINDOW", FAR, "REFRESH"), [(ADD, 0, 40)], (0, 40)),
    "window-items": (
        ("0.01", 100, "WINDOW", 100, "ITEMS", "GENERATIONS", 4), [(ADD, 0, 300)], (210, 300)
    ),  # fmt: skip
}


def filter_line(client, name):
    info = client.call("BF.INFO", name)
    fields = dict(zip(info[::2], info[1::2]))
    found = client.call("BF.MEXISTS", name, *(f"absent:{number}" for number in range(1000)))
    words = [
        name, fields[b"Capacity"], fields[b"Number of filters"],
        fields[b"Number of items inserted"], fields[b"Expansion rate"] or 0,
        *(number for number, answer in enumerate(found) if answer),
    ]  # fmt: skip
    return " ".join(map(str, words))


def write_chunks(client, name):
    folder = HERE / "scandump" / name
    folder.mkdir(parents=True, exist_ok=True)
    position = 0
    for number in range(100):
        position, data = client.call("BF.SCANDUMP", name, position)
        if position == 0:
            return
        (folder / f"{number:02}.bin").write_bytes(data)


def make(client, name, reservation, steps):
    reply = client.call("BF.RESERVE", name, *reservation)
    assert reply == b"OK", (name, reply)
    added = set()
    for command, first, end in steps:
        for number in range(first, end):
            # An item that was a false positive when it was added must not be deleted.
            if command == DELETE and number not in added:
                continue
            if client.call(command, name, f"item:{number}") == [1]:
                added.add(number)


def make_merged(client):
    for source, first, end in (("left", 0, 100), ("right", 50, 150)):
        make(client, source, ("0.01", 200), [(ADD, first, end)])
    reply = client.call("BF.MERGE", "merged", "left", "right")
    assert reply == b"OK", reply


def main():
    server = Process(SERVER, ["--appendonly", "no", "--save", "", "--bf-native-version", "1"])
    server.wait_until_ready()
    try:
        with server.connect() as client:
            write_all(client)
    finally:
        problems = server.stop()
    assert not problems, problems


def write_all(client):
    (HERE / "dump").mkdir(parents=True, exist_ok=True)
    lines, items = [], []
    for name in sys.argv[1:] or [*FILTERS, "merged"]:
        if (HERE / "dump" / f"{name}.bin").exists():
            continue
        if name == "merged":
            make_merged(client)
            first, end = 0, 150
        else:
            reservation, steps, (first, end) = FILTERS[name]
            make(client, name, reservation, steps)
        present = client.call("BF.MEXISTS", name, *(f"item:{n}" for n in range(first, end)))
        assert all(present), name
        (HERE / "dump" / f"{name}.bin").write_bytes(client.call("DUMP", name))
        write_chunks(client, name)
        lines.append(filter_line(client, name))
        items.append(f"{name} {first} {end}")
    for file, added in (("expected.txt", lines), ("items.txt", items)):
        with open(HERE / file, "a", encoding="ascii") as text:
            text.writelines(line + "\n" for line in added)


if __name__ == "__main__":
    main()
