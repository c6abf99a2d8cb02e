#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests docker-entrypoint.sh with stand-ins for the programs that it calls, and without Docker."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENTRYPOINT = ROOT / "scripts" / "docker-entrypoint.sh"

# A stand-in that prints its own name and arguments, one per line, and then its umask.
SAY = '#!/bin/sh\nfor word in "$(basename "$0")" "$@"; do echo "$word"; done\numask\n'
# A stand-in for setpriv. It does not change the user, but sets the variable from which the stand-in
# for `id` prints the uid.
SETPRIV = """#!/bin/sh
echo "setpriv $1 $2 $3" >> "$STAND_IN_LOG"
while [ "$1" != -- ]; do shift; done
shift
STAND_IN_UID=999 exec "$@"
"""
FIND = '#!/bin/sh\necho "find $*" >> "$STAND_IN_LOG"\n'
# A stand-in for find. It calls the real find with the uid 65533 in place of the user bloomery,
# because this user need not exist.
REAL_FIND = """#!/bin/sh
for word in "$@"; do
  shift
  [ "$word" = bloomery ] && word=65533
  set -- "$@" "$word"
done
exec /usr/bin/find "$@"
"""
# A stand-in for chown, which logs the files that chown would change.
CHOWN = """#!/bin/sh
resolve=realpath
if [ "$1" = -h ]; then
  resolve='realpath --no-symlinks'
  shift
fi
shift
for path in "$@"; do echo "chown $($resolve "$path")" >> "$STAND_IN_LOG"; done
"""
ID = '#!/bin/sh\necho "$STAND_IN_UID"\n'


class DockerEntrypointTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.log = self.root / "log"
        stand_ins = {"setpriv": SETPRIV, "find": FIND, "id": ID}
        for name in ("bloomery-server", "redis-server", "valkey-server", "redis-cli"):
            stand_ins[name] = SAY
        (self.root / "bin").mkdir()
        for name, text in stand_ins.items():
            path = self.root / "bin" / name
            path.write_text(text, encoding="ascii")
            path.chmod(0o755)

    def run_entrypoint(
        self, *arguments, uid=999, umask=0o022, cwd=None, stdin="", **environment
    ):
        """Returns (command and arguments, umask) of the program that the entrypoint has executed.
        """
        done = subprocess.run(
            [ENTRYPOINT, *arguments],
            cwd=cwd or self.root, umask=umask, input=stdin, stdout=subprocess.PIPE, text=True,
            check=True,
            env={"PATH": f"{self.root}/bin:{os.environ['PATH']}", "STAND_IN_LOG": str(self.log),
                 "STAND_IN_UID": str(uid), **environment},
        )  # fmt: skip
        *words, mask = done.stdout.splitlines()
        return words, mask

    def assert_becomes(self, expected, *arguments, **options):
        self.assertEqual(self.run_entrypoint(*arguments, **options)[0], expected)

    def test_no_argument_is_the_server(self):
        self.assert_becomes(["bloomery-server", "--protected-mode", "no"])

    def test_options_go_to_the_server(self):
        expected = ["bloomery-server", "--protected-mode", "no", "--save", "", "--port", "7000"]
        self.assert_becomes(expected, "--save", "", "--port", "7000")

    def test_conf_file_goes_to_the_server(self):
        conf = self.root / "my own.conf"
        conf.write_text("port 7000\n", encoding="ascii")
        expected = ["bloomery-server", str(conf), "--protected-mode", "no", "--port", "1"]
        self.assert_becomes(expected, str(conf), "--port", "1")
        conf.write_text("port 7000\n  Protected-Mode yes\n", encoding="ascii")
        self.assert_becomes(["bloomery-server", str(conf)], str(conf))

    def test_file_that_sets_protected_mode_wins(self):
        conf = self.root / "own.conf"
        names = {
            "inc.conf": "PROTECTED-mode yes\n", "a b.conf": "protected-mode yes\n",
            "deep.conf": "include inc.conf\n", "none.conf": "port 1\n", "loop.conf": "",
        }  # fmt: skip
        for name, text in names.items():
            (self.root / name).write_text(text, encoding="ascii")
        (self.root / "loop.conf").write_text("include loop.conf\n", encoding="ascii")
        for line, is_set in (
            ('"protected-mode" yes', True), ("'Protected-Mode' yes", True),
            ("# protected-mode yes", False), ("include inc.conf", True),
            (f'Include "{self.root}/inc.conf"  ', True), ("include 'a b.conf'", True),
            ("include deep.conf", True), ("include i*.conf", True), ("include none.conf", False),
            ("include absent.conf", False), ("include loop.conf", False),
            ("# include inc.conf", False),
        ):  # fmt: skip
            with self.subTest(line=line):
                conf.write_text(f"port 7000\n{line}\n", encoding="ascii")
                default = [] if is_set else ["--protected-mode", "no"]
                self.assert_becomes(
                    ["bloomery-server", "own.conf", *default, "--port", "1"],
                    "own.conf", "--port", "1",
                )  # fmt: skip

    def test_standard_input_wins(self):
        server = self.root / "bin" / "bloomery-server"
        server.write_text(SAY.replace("umask", "cat; umask"), encoding="ascii")
        (self.root / "own.conf").write_text("protected-mode yes\n", encoding="ascii")
        (self.root / "empty.conf").write_text("", encoding="ascii")
        text = 'protected-mode yes\nrequirepass "$HOME `id`"'
        default = ["protected-mode no"]
        for arguments, passed, first in (
            (["-"], ["-"], default),
            (["-", "--port", "1"], ["--port", "1", "--hz", "9", "-"], default),
            (["--port", "1", "-"], ["--port", "1", "--hz", "9", "-"], default),
            (["empty.conf", "-"], ["empty.conf", "-"], default),
            (["own.conf", "--a", "b c", "-"], ["own.conf", "--a", "b c", "-"], []),
        ):
            with self.subTest(arguments=arguments):
                flags = {"REDIS_ARGS": "--hz 9"} if "--hz" in passed else {}
                expected = ["bloomery-server", *passed, *first, *text.split("\n")]
                self.assert_becomes(expected, *arguments, stdin=text + "\n", **flags)

    def test_names_of_other_servers_are_servers_too(self):
        for name in ("redis-server", "valkey-server", "bloomery-server"):
            expected = [name, "--protected-mode", "no", "--port", "1"]
            self.assert_becomes(expected, name, "--port", "1")

    def test_other_commands_run_unchanged(self):
        self.assert_becomes(["redis-cli", "PING"], "redis-cli", "PING", VALKEY_EXTRA_FLAGS="--x")
        self.assert_becomes(["redis-cli", "PING"], "redis-cli", "PING", uid=0)
        self.assertFalse(self.log.exists(), "the user was changed")

    def test_commands_that_only_print_run_unchanged(self):
        for words in (["--version"], ["-v"], ["--help"], ["--check-rdb", "a b"], ["--health-check"],
                      ["--check-aof", "x", "--fix"], ["--build-filter", "out.rdb"]):  # fmt: skip
            for name in ([], ["redis-server"], ["bloomery-server"]):
                expected = [*(name or ["bloomery-server"]), *words]
                self.assert_becomes(expected, *name, *words, VALKEY_EXTRA_FLAGS="--x", uid=0)
        self.assertFalse(self.log.exists(), "the user was changed")

    def test_extra_flags_are_appended_word_by_word(self):
        expected = ["bloomery-server", "--protected-mode", "no", "--port", "1"]
        expected += ["--bind", "*", "--a", "b", "--c", "d"]
        self.assert_becomes(
            expected, "--port", "1",
            BLOOM_EXTRA_FLAGS="--bind *", VALKEY_EXTRA_FLAGS="--a b", REDIS_ARGS="--c  d",
        )  # fmt: skip

    def test_root_hands_the_directory_to_bloomery(self):
        expected = ["bloomery-server", "--protected-mode", "no", "--x", "y z", "--flag"]
        self.assert_becomes(expected, "--x", "y z", uid=0, VALKEY_EXTRA_FLAGS="--flag")
        log = self.log.read_text(encoding="ascii")
        self.assertRegex(log, r"^find -P \. ! -user bloomery -exec chown -h bloomery")
        self.assertIn("setpriv --reuid=bloomery --regid=bloomery --clear-groups", log)

    def test_targets_of_links_keep_their_owner(self):
        (self.root / "bin" / "find").write_text(REAL_FIND, encoding="ascii")
        chown = self.root / "bin" / "chown"
        chown.write_text(CHOWN, encoding="ascii")
        chown.chmod(0o755)
        data = self.root / "data"
        data.mkdir()
        outside = self.root / "outside"
        (outside / "folder").mkdir(parents=True)
        (outside / "secret").write_text("", encoding="ascii")
        (data / "file").symlink_to(outside / "secret")
        (data / "folder").symlink_to(outside)
        (data / "own").write_text("", encoding="ascii")
        self.run_entrypoint(uid=0, cwd=data)
        lines = self.log.read_text(encoding="ascii").splitlines()
        changed = {line.removeprefix("chown ") for line in lines if line.startswith("chown ")}
        real_data = data.resolve()
        expected = [real_data, real_data / "own", real_data / "file", real_data / "folder"]
        self.assertEqual(changed, {str(path) for path in expected})

    def test_file_that_cannot_be_changed_is_no_failure(self):
        find = self.root / "bin" / "find"
        find.write_text("#!/bin/sh\nexit 1\n", encoding="ascii")
        self.assert_becomes(["bloomery-server", "--protected-mode", "no"], uid=0)

    def test_umask_is_tightened_unless_chosen(self):
        self.assertEqual(self.run_entrypoint("--x")[1], "0077")
        self.assertEqual(self.run_entrypoint("--x", umask=0o002)[1], "0002")

    def test_dockerfile_keeps_what_charts_expect(self):
        text = (ROOT / "Dockerfile").read_text(encoding="ascii")
        for line in (
            r"^FROM debian:12-slim AS build$", r"^FROM debian:12-slim$", r"--uid 999 .*bloomery",
            r"^VOLUME /data$", r"^WORKDIR /data$", r"^EXPOSE 6379 9121$",
            r'^ENTRYPOINT \["docker-entrypoint.sh"\]$', r'^CMD \["bloomery-server"\]$',
            r"bloomery-server /usr/local/bin/redis-server",
            r"bloomery-server /usr/local/bin/valkey-server", r"\bredis-tools\b",
        ):  # fmt: skip
            self.assertTrue(re.search(line, text, re.MULTILINE), line)


if __name__ == "__main__":
    unittest.main()
