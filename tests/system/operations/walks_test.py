# SPDX-License-Identifier: MIT
"""Runs the commands of docs/migration.md, docs/persistence.md, docs/backup.md and docs/upgrading.md
one after the other, as a reader would type them. Only ports and directories differ.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from harness import DEADLINE_S, ROOT, SERVER, ServerTest, free_port, wait_until
from harness.pages import blocks_of
from harness.resp import Connection


class WalksTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-walks-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for name in ("bin", "var/lib", "var/backups"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "bin/bloomery-server").symlink_to(SERVER)
        self.port = free_port()
        self.names = {"/var/": f"{self.folder}/var/", "7000": str(self.port)}
        self.addCleanup(self.end_server)

    def end_server(self):
        """Ends the server that commands of the documentation started as a daemon."""
        log = self.folder / "var/lib/bloomery/log"
        try:
            self.call("SHUTDOWN", "NOSAVE")
        except (OSError, EOFError):
            return
        finally:
            if log.exists():
                problems = [line for line in log.read_text().splitlines() if " # " in line]
                # Warnings about the machine's memory overcommit are expected.
                self.assertEqual([p for p in problems if "overcommit" not in p], [])

    def run_block(self, text):
        """Runs a block of shell commands; returns the completed process."""
        for written, meant in self.names.items():
            text = text.replace(written, meant)
        return subprocess.run(
            ["bash", "-e", "-c", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=DEADLINE_S, check=False, cwd=self.folder,
            env={**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"},
        )  # fmt: skip

    def type_in(self, text):
        """Runs a block of shell commands from a page of docs/; returns the output."""
        done = self.run_block(text)
        self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout}")
        return done.stdout

    def replace_cli(self, cases):
        """Lets redis-cli answer some commands itself. `cases` are cases of a shell's `case`."""
        path = self.folder / "bin/redis-cli"
        path.write_text(
            f'#!/bin/sh\ncase "$*" in\n{cases}\nesac\nexec {shutil.which("redis-cli")} "$@"\n'
        )
        path.chmod(0o755)

    def call(self, *words):
        with Connection(self.port) as client:
            return client.call(*words)

    def is_up(self):
        try:
            return self.call("PING") == b"PONG"
        except (OSError, EOFError):
            return False

    def start_daemon(self, options=""):
        self.type_in(
            "install -d /var/lib/bloomery\n"
            "bloomery-server --port 7000 --dir /var/lib/bloomery --daemonize yes"
            f" --logfile /var/lib/bloomery/log {options}"
        )
        wait_until(self.is_up, "the server is up")

    def section(self, page, heading):
        """Returns the blocks of shell commands in one section of a page of docs/."""
        text = (ROOT / page).read_text(encoding="utf-8").split(f"\n## {heading}\n")[1]
        text = text.split("\n## ")[0]
        return [block for language, block in blocks_of(page) if language == "sh" and block in text]


class MigrationTest(WalksTest):
    def start_old_server(self):
        (self.folder / "var/lib/redis").mkdir()
        redis = self.start_redis(
            "--dir", self.folder / "var/lib/redis", "--repl-diskless-sync-delay", "0"
        )
        redis.keeps_directory = True
        redis.expect_log("Diskless rdb transfer|Connection with replica .* lost")
        self.names["6379"] = str(redis.port)
        with redis.connect() as client:
            client.call("SET", "greeting", "hello")
            client.call("SETBIT", "bits", 4711, 1)
            client.call("SET", "soon", "gone", "EX", 3600)
        return redis

    def check_data(self):
        self.assertEqual(self.call("GET", "greeting"), b"hello")
        self.assertEqual(self.call("GETBIT", "bits", 4711), 1)
        self.assertGreater(self.call("TTL", "soon"), 3000)

    def test_by_copying_files(self):
        self.start_old_server()
        see, stop, start, compare = self.section("docs/migration.md", "By copying files")
        self.assertIn("string", self.type_in(see))
        self.type_in(stop)
        self.type_in(start)
        self.assertIn("3\n", self.type_in(compare))
        self.check_data()

    def test_live(self):
        redis = self.start_old_server()
        start, wait, cut_over, end = self.section("docs/migration.md", "Live")
        self.type_in(start)
        self.assertEqual(self.type_in(wait).split()[-2:], ["3", "3"])
        with redis.connect() as client:
            client.call("SET", "greeting", "hello again")
            self.type_in(cut_over)
            self.assertEqual(self.call("GET", "greeting"), b"hello again")
            self.assertEqual(self.call("SET", "greeting", "hello"), b"OK")
        self.type_in(end)
        self.check_data()

    def check_file_of(self, module):
        """Runs the commands of docs/migration.md with a snapshot that a server with the module
        `module` wrote.
        """
        (self.folder / "var/lib/redis").mkdir()
        shutil.copy(
            ROOT / "tests/vectors" / module / "dump.rdb", self.folder / "var/lib/redis/dump.rdb"
        )
        *_, start, _ = self.section("docs/migration.md", "By copying files")
        self.type_in(start)
        self.assertGreater(len(self.call("BF.SCAN", 0, "COUNT", 100)[1]), 0)

    def test_files_of_redisbloom(self):
        self.check_file_of("redisbloom")

    def test_files_of_valkey_bloom(self):
        self.check_file_of("valkey-bloom")


class PersistenceTest(WalksTest):
    PAGE = "docs/persistence.md"

    def test_backup_and_recovery_from_it(self):
        self.start_daemon()
        self.call("BF.ADD", "filter", "kept")
        (backup,) = self.section(self.PAGE, "Backup")
        self.type_in(backup)
        self.call("BF.ADD", "filter", "later")
        from_backup, *_ = self.section(self.PAGE, "Recovery")
        self.type_in(from_backup)
        wait_until(self.is_up, "the server is up")
        self.assertEqual(self.call("BF.MEXISTS", "filter", "kept", "later"), [1, 0])

    def test_backup_stops_if_the_save_fails(self):
        self.replace_cli(
            "*LASTSAVE) echo 1; exit;;\n*BGSAVE*) echo 'Background saving scheduled'; exit;;\n"
            "*INFO*) echo rdb_bgsave_in_progress:0; echo aof_rewrite_in_progress:0\n"
            "echo rdb_last_bgsave_status:err; exit;;"
        )
        (self.folder / "var/lib/bloomery").mkdir()
        shutil.copy(ROOT / "tests/vectors/redisbloom/dump.rdb", self.folder / "var/lib/bloomery")
        (backup,) = self.section(self.PAGE, "Backup")
        done = self.run_block(backup)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertEqual(list((self.folder / "var/backups").iterdir()), [])

    def test_recovery_stops_if_the_server_runs(self):
        self.start_daemon()
        self.replace_cli("*SHUTDOWN*) echo NOAUTH; exit;;")
        (self.folder / "var/backups/dump-copy.rdb").touch()
        from_backup, *_ = self.section(self.PAGE, "Recovery")
        done = self.run_block(from_backup)
        self.assertIn("the server still runs", done.stdout)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertFalse((self.folder / "var/lib/bloomery.old").exists())

    def test_a_log_that_is_damaged(self):
        self.start_daemon()
        for number in range(100):
            self.call("SET", f"key:{number}", "value")
        self.end_server()
        (log,) = (self.folder / "var/lib/bloomery/appendonlydir").glob("*.incr.aof")
        whole = log.read_bytes()
        _, copy, check, fix = self.section(self.PAGE, "Recovery")

        # --check-aof --fix cuts an incomplete command off the log's end and keeps all other data.
        log.write_bytes(whole + b"*3\r\n$3\r\nSET\r\n$5\r\nto")
        self.type_in(copy)
        self.type_in(check)
        self.assertNotEqual(log.read_bytes(), whole)
        self.type_in(fix)
        self.assertEqual(log.read_bytes(), whole)

        # --check-aof reports damage in the middle of the log, and --fix leaves the log unchanged.
        damaged = whole.replace(b"key:50", b"key:5X", 1)
        log.write_bytes(damaged)
        self.assertIn(log.name, self.type_in(check))
        self.type_in(fix)
        self.assertEqual(log.read_bytes(), damaged)
        log.write_bytes(whole)
        self.start_daemon()
        self.assertEqual(self.call("DBSIZE"), 100)


class BackupTest(WalksTest):
    PAGE = "docs/backup.md"

    def test_copy_while_the_server_runs_and_drill(self):
        self.start_daemon()
        for number in range(100):
            self.call("BF.ADD", f"filter:{number}", "kept")
        (copy,) = self.section(self.PAGE, "The log, while the server runs")
        with Connection(self.port) as writer:
            # This client writes while the log is copied.
            writer.send(b"BF.ADD busy item\r\n" * 10_000)
            self.assertIn("The log is sound.", self.type_in(copy))
        self.assertEqual(
            self.call("CONFIG", "GET", "auto-aof-rewrite-percentage"),
            [b"auto-aof-rewrite-percentage", b"100"],
        )
        (retention,) = self.section(self.PAGE, "Retention")
        old = self.folder / "var/backups/bloomery-2000-01-01-000000"
        old.mkdir()
        # The log was last rewritten a long time ago, so the copy has an old time, too.
        for directory in (old, self.folder / "var/backups/appendonlydir"):
            os.utime(directory, (0, 0))
        self.type_in(retention)
        (kept,) = (self.folder / "var/backups").iterdir()
        self.assertTrue((kept / "appendonly.aof.manifest").exists())
        self.names["7001"] = str(free_port())
        (drill,) = self.section(self.PAGE, "A restore drill")
        self.assertIn(int(self.type_in(drill).split("\n")[0]), (100, 101))

    def test_copy_waits_for_a_scheduled_rewrite(self):
        self.start_daemon()
        counter = self.folder / "counter"
        self.replace_cli(
            f"*INFO*) echo >> {counter}; echo aof_rewrite_in_progress:0\n"
            f"echo aof_rewrite_scheduled:$([ $(wc -l < {counter}) -lt 3 ] && echo 1 || echo 0)\n"
            "exit;;"
        )
        (copy,) = self.section(self.PAGE, "The log, while the server runs")
        self.type_in(copy)
        self.assertEqual(counter.read_text().count("\n"), 3)

    def test_back_to_a_moment_needs_a_stopped_server(self):
        self.start_daemon("--aof-timestamp-enabled yes")
        self.call("SET", "key", "kept")
        self.names["1790000000"] = "1"
        self.replace_cli("*SHUTDOWN*) echo NOAUTH; exit;;")
        (restore,) = self.section(self.PAGE, "Back to a moment")
        done = self.run_block(restore)
        self.assertIn("the server still runs", done.stdout)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertEqual(list((self.folder / "var/backups").iterdir()), [])

    def test_back_to_a_moment(self):
        self.start_daemon("--aof-timestamp-enabled yes")
        self.call("BF.ADD", "filter", "kept")
        moment = int(time.time())
        wait_until(lambda: time.time() >= moment + 1, "the next second")
        self.call("BF.ADD", "filter", "later")
        self.call("FLUSHALL")
        # Restarts the server, which continues to write the same append log.
        self.end_server()
        self.start_daemon("--aof-timestamp-enabled yes")
        self.call("SET", "also", "later")
        self.names["1790000000"] = str(moment)
        (restore,) = self.section(self.PAGE, "Back to a moment")
        self.type_in(restore)
        wait_until(self.is_up, "the server is up")
        self.assertEqual(self.call("BF.MEXISTS", "filter", "kept", "later"), [1, 0])
        self.assertEqual(self.call("DBSIZE"), 1)


class UpgradingTest(WalksTest):
    def test_one_server_by_hand(self):
        self.start_daemon()
        self.call("BF.ADD", "filter", "kept")
        (commands,) = self.section("docs/upgrading.md", "One server")
        self.type_in(commands)
        wait_until(self.is_up, "the server is up")
        self.assertEqual(self.call("BF.EXISTS", "filter", "kept"), 1)


if __name__ == "__main__":
    unittest.main()
