#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes tests/vectors/upgrade/NAME: the data files and a replication stream of one version, to
test that later versions can read them.

Usage: BLOOMERY_SERVER=/path/of/that/version/bloomery-server tests/vectors/make_upgrade.py NAME

The folder gets dump.rdb, and appendonlydir/ with a base and commands after the base. It also gets
the snapshot and the stream that the server sent to a replica: stream-snapshot.rdb, stream.bin. The
file expected.json has commands with the replies of the server. The script does not change an
existing folder, because the files that a released version writes never change.
"""

import json
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "system"))
from harness import SERVER, Process, wait_until  # noqa: E402
from harness.info import info  # noqa: E402
from harness.replication_peer import RawReplica  # noqa: E402
from harness.resp import ErrorReply, plain  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent / "upgrade"
FAR = 100_000_000  # seconds, so long that no key expires and no generation rotates for years
END_MARK = "end-of-the-stream"

# Commands that create every kind of value. The server executes the second half after it has sent
# the snapshot to the replica.
FIRST_HALF = [
    ("BF.RESERVE", "native", "0.01", 50),
    ("BF.RESERVE", "fixed", "0.001", 100, "NONSCALING"),
    ("BF.RESERVE", "deletable", "0.01", 100, "DELETABLE"),
    ("BF.RESERVE", "regions", "0.01", 100, "DELETABLE", "REGIONS", 10),
    ("BF.RESERVE", "window", "0.01", 100, "WINDOW", FAR),
    ("BF.RESERVE", "items", "0.01", 50, "WINDOW", 50, "ITEMS"),
    ("BF.RESERVE", "sparse", "0.01", 1_000_000),
    ("SET", "text", "before"),
    ("SET", "number", 41),
    ("SET", "lasting", "x", "EX", FAR),
    ("SETBIT", "bits", 1000, 1),
    *(("BF.ADD", name, f"item:{number}")
      for name in ("native", "fixed", "deletable", "regions", "window", "items", "sparse")
      for number in range(40)),
]  # fmt: skip
SECOND_HALF = [
    ("INCR", "number"),
    ("APPEND", "text", " and after"),
    ("SETBIT", "bits", 2000, 1),
    ("BITFIELD", "bits", "SET", "u8", 3000, 200),
    *(("BF.ADD", "native", f"item:{number}") for number in range(40, 200)),
    ("BF.DEL", "deletable", "item:1"),
    ("BF.DEL", "regions", "item:1"),
    ("BF.MADD", "window", "item:40", "item:41"),
    ("BF.RESERVE", "late", "0.01", 100),
    ("BF.ADD", "late", "item:0"),
    ("SELECT", 3),
    ("SET", "elsewhere", "yes"),
    ("SELECT", 0),
]  # fmt: skip
QUESTIONS = [
    ("DBSIZE",),
    ("GET", "text"), ("GET", "number"), ("GET", "lasting"),
    ("BITCOUNT", "bits"), ("BITFIELD", "bits", "GET", "u8", 3000),
    *(("BF.CARD", name) for name in
      ("native", "fixed", "deletable", "regions", "window", "items", "sparse", "late")),
    *(("BF.INFO", name, field) for name in ("native", "fixed", "deletable", "late")
      for field in ("CAPACITY", "FILTERS", "ITEMS")),
    *(("BF.MEXISTS", name, *(f"item:{number}" for number in range(60)))
      for name in ("native", "fixed", "deletable", "regions", "window", "items", "sparse")),
]  # fmt: skip


def run(client, commands):
    for command in commands:
        reply = client.call(*command)
        assert not isinstance(reply, ErrorReply), (command, reply)


def record(folder):
    data = folder / "data"
    data.mkdir(parents=True)
    server = Process(
        SERVER, ["--appendonly", "yes", "--save", "", "--repl-diskless-sync-delay", "0"],
        directory=data,
    )  # fmt: skip
    server.wait_until_ready()
    try:
        with server.connect() as client:
            run(client, FIRST_HALF)
            run(client, [("BGREWRITEAOF",)])
            wait_until(lambda: info(client, "persistence")["aof_rewrite_in_progress"] == "0")
            # A replica that does not announce `bloomery` is refused if it cannot hold all filters.
            replica = RawReplica(server.port, capa=("eof", "psync2", "bloomery"))
            replica.psync()
            (folder / "stream-snapshot.rdb").write_bytes(replica.read_snapshot())
            replica.link.send(b"REPLCONF ACK 0\r\n")
            run(client, SECOND_HALF)
            # SAVE is refused while the child that sent the snapshot exists.
            wait_until(lambda: info(client, "persistence")["rdb_bgsave_in_progress"] == "0")
            run(client, [("SAVE",), ("SET", END_MARK, "x")])
            wait_until(lambda: receive_until_mark(replica), "the stream's end")
            (folder / "stream.bin").write_bytes(bytes(replica.buffer))
            replica.close()
            run(client, [("DEL", END_MARK)])
            expected = [[list(question), plain(client.call(*question))] for question in QUESTIONS]
    finally:
        problems = server.stop()
    assert not problems, problems
    shutil.move(data / "dump.rdb", folder)
    shutil.move(data / "appendonlydir", folder)
    shutil.rmtree(data)
    lines = ",\n".join(json.dumps(line, separators=(",", ":")) for line in expected)
    (folder / "expected.json").write_text(f"[\n{lines}\n]\n", encoding="ascii")


def receive_until_mark(replica):
    if END_MARK.encode() not in replica.buffer:
        replica.receive()
    return bytes(replica.buffer).endswith(b"$1\r\nx\r\n") and END_MARK.encode() in replica.buffer


def main():
    (name,) = sys.argv[1:]
    folder = HERE / name
    if folder.exists():
        sys.exit(f"{folder} exists; what a version wrote does not change")
    record(folder)


if __name__ == "__main__":
    main()
