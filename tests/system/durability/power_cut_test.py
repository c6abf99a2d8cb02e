#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests power cuts under load. With appendfsync `always` the server loses no acknowledged write,
with `everysec` only writes of the last two seconds. After every cut it starts without manual
repair. The shutdown ioctl cuts the power of an ext4 file system that the test mounts: unsynced data
are lost, as on a real machine. A further test finds in strace's output which bytes of the append
log a completed sync covers, and cuts off all other bytes.

Environment:
  BLOOMERY_POWER_CUTS           number of power cuts with appendfsync `always`
  BLOOMERY_POWER_CUTS_EVERYSEC  number of power cuts with `everysec`; each takes some seconds
"""

import os
import pathlib
import random
import re
import shutil
import tempfile
import time
import unittest

from harness import ServerTest, disks, let_time_pass, seed_from_environment, wait_until
from harness.counts import count
from harness.write_load import Load, disturb

CUTS = count("POWER_CUTS")
CUTS_EVERYSEC = count("POWER_CUTS_EVERYSEC")
OPTIONS = ["--appendonly", "yes", "--bf-initial-size", "50", "--auto-aof-rewrite-min-size"]
PROMISED_S = 2


def why_no_power_disk():
    reason = disks.why_no_mounts()
    if reason:
        return reason
    try:
        disk = disks.PowerDisk(8)
        try:
            disk.cut_power()
        finally:
            disk.remove()
    except (OSError, disks.subprocess.CalledProcessError) as error:
        return f"no ext4 of our own whose power can be cut: {error}"
    return ""


NO_POWER_DISK = why_no_power_disk()


class PowerCutTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.seed = seed_from_environment()

    def setUp(self):
        self.rng = random.Random(f"{self.seed}/{self.id()}")

    def start(self, directory, fsync, threads, *, rewrite_at="200kb", **more):
        options = [*OPTIONS, rewrite_at, "--appendfsync", fsync, "--io-threads", threads]
        server = self.start_server(*options, directory=directory, **more)
        server.expect_log(r"is torn: .* cut off at offset")
        server.expect_log(r"no sound checksum line .*last \d+ commands")
        return server

    def power_disk(self):
        if NO_POWER_DISK:
            self.skipTest(NO_POWER_DISK)
        disk = disks.PowerDisk()
        self.addCleanup(disk.remove)
        return disk

    def cut(self, disk, server, load, fsync):
        """Cuts the power, then restores it. Returns the time when the cut began. Replies after that
        time do not count, because a sync that is running then may report success for lost bytes.
        """
        cut_at = time.monotonic()
        disk.cut_power()
        server.expect_log("Can't rewrite the append log|Background .* failed")
        if fsync == "always":
            server.expect_log("append log fails .*appendfsync is always")
            server.expected_exit = 1
            self.assertEqual(server.wait_for_exit(), 1)
        else:
            server.expect_log("append log fails.* writes are refused")
            server.wait_for_log("append log fails.* writes are refused")
            server.crash()
        load.join()
        disk.restore_power()
        return cut_at

    def run_cuts(self, fsync, cycles, disturb_some):
        """Cuts the power `cycles` times under load. Before each cut, `disturb_some` is called with
        the server and its load.
        """
        disk = self.power_disk()
        load = Load(self.rng.random())
        missing = 0
        for _ in range(cycles):
            threads = self.rng.choice([1, 4])
            server = self.start(disk.path, fsync, threads)
            load.start(server.port)
            disturb_some(server, load)
            cut_at = self.cut(disk, server, load, fsync)
            server = self.start(disk.path, fsync, threads)
            promised_s = 0 if fsync == "always" else PROMISED_S
            with server.connect() as connection:
                missing += load.check(connection, lost_since=cut_at - promised_s)
            server.crash()
        self.assertGreater(load.acked_count, 10 * cycles)
        print(
            f"{fsync}: {cycles} power cuts, {load.acked_count} acknowledged writes checked, none "
            f"lost that was acknowledged {promised_s} s before the cut, {missing} later ones; 0 "
            "starts refused",
            flush=True,
        )

    def disturb_some(self, server, load):
        disturb(server, self.rng, load, self.rng.randrange(20, 1000))

    def test_always_loses_nothing(self):
        self.run_cuts("always", CUTS, self.disturb_some)

    def test_everysec_loses_two_seconds_at_most(self):
        def disturb_for_seconds(server, load):
            self.disturb_some(server, load)
            let_time_pass(
                self.rng.uniform(1, 2.5),
                why="the log is synced once a second, and only older writes must be there",
            )
            self.disturb_some(server, load)

        self.run_cuts("everysec", CUTS_EVERYSEC, disturb_for_seconds)

    def test_always_syncs_before_it_answers(self):
        """Checks appendfsync `always`. The test kills the server and drops all bytes of the append
        log that no completed fdatasync covers. No acknowledged write may be lost.
        """
        directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-power-"))
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        trace = directory / "trace"
        data = directory / "data"
        data.mkdir()
        load = Load(self.rng.random())
        for _ in range(3):
            calls = "trace=write,fdatasync,openat,ftruncate"
            prefix = ["strace", "-D", "-f", "-y", "-s", "0", "-o", str(trace), "-e", calls]
            sizes = {path: path.stat().st_size for path in data.glob("*/*.incr.aof")}
            server = self.start(data, "always", 4, rewrite_at="1gb", prefix=prefix)
            load.start(server.port)
            load.wait_for_writes(self.rng.randrange(20, 200))
            server.crash()
            load.join()
            # Waits for the end of the trace, because strace writes its last lines after the server
            # has ended.
            end = re.compile(rf"^{server.pid} +\+\+\+ killed", re.MULTILINE)
            wait_until(lambda: end.search(trace.read_text(errors="replace")), "the trace's end")
            (path,) = data.glob("*/*.incr.aof")
            synced = sizes.get(path, 0) + synced_bytes(trace, path.name)
            self.assertLessEqual(synced, path.stat().st_size)
            os.truncate(path, synced)
            server = self.start(data, "always", 4, rewrite_at="1gb")
            with server.connect() as connection:
                self.assertEqual(load.check(connection), 0)
            server.crash()
        self.assertGreater(load.acked_count, 30)


def synced_bytes(trace, name):
    """Reads a trace of strace. Returns the number of bytes that had been written to the file `name`
    when its last completed fdatasync began.
    """
    written = covered = at_sync = 0
    syncing = False
    unfinished = {}
    for line in trace.read_text(errors="replace").splitlines():
        thread, _, text = line.partition(" ")
        text = text.strip()
        if text.endswith("<unfinished ...>"):
            unfinished[thread] = text.removesuffix("<unfinished ...>")
            if text.startswith("fdatasync") and name in text:
                at_sync = written
            continue
        if text.startswith("<... "):
            text = unfinished.pop(thread, "") + text.partition(">")[2]
        elif text.startswith("fdatasync") and name in text:
            at_sync = written
        match = re.match(r"(write|fdatasync)\(\d+<[^>]*/" + re.escape(name) + r">.*= (\d+)", text)
        if match and match[1] == "write":
            written += int(match[2])
        elif match:
            covered = at_sync
    return covered


if __name__ == "__main__":
    unittest.main()
