# SPDX-License-Identifier: MIT
"""Tests the Dockerfile without Docker: replays its instructions in a bare Debian 12, and starts the
resulting image in every way that its entrypoint supports.

Some steps differ from Docker's. The base image is not debian:12-slim, but debootstrap's minimal
Debian without the paths that slim images exclude. The build stage does not compile: the test uses
the program under test, because the CI has built the same preset. The test does not install the
Debian packages of the build stage, and only checks that they exist. The test reads HEALTHCHECK,
CMD, ENTRYPOINT and WORKDIR from the Dockerfile and executes them.

If the test cannot create or enter a root file system (no mirror, no rights), it is skipped with the
reason.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import CLUSTER_TOOL, DEADLINE_S, ROOT, SERVER, ServerTest, wait_until
from harness.debian_root import BUILD, in_root, make_root, run

# Maximum size, in megabytes, of everything that the image adds to its base image.
SIZE_MB_MAX = 60
# Paths that the scripts for Debian's slim images remove.
NOT_IN_SLIM = ("usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale",
               "usr/share/lintian", "usr/share/linda", "usr/share/groff")  # fmt: skip
# Where the build stage puts the licence texts, and where the image has them.
LICENSES = "/src/build/licenses"
DOCUMENTS = "usr/share/doc/bloomery"


def instructions():
    """Returns the Dockerfile's instructions as pairs (name, arguments), one list per build stage.
    """
    text = (ROOT / "Dockerfile").read_text(encoding="ascii")
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    stages = []
    for line in filter(None, map(str.strip, text.splitlines())):
        verb, words = line.split(None, 1)
        if verb == "FROM":
            stages.append([])
        stages[-1].append((verb, words))
    return stages


def value_of(stage, verb):
    (words,) = [words for name, words in stage if name == verb]
    return words


class InstructionsTest(unittest.TestCase):
    def test_every_instruction_is_known(self):
        """The Dockerfile has only instructions that ImageTest replays or ignores on purpose."""
        build, final = instructions()
        self.assertEqual(
            [verb for verb, _ in build], ["FROM", "WORKDIR", "COPY", "RUN", "COPY", "ARG", "RUN"]
        )
        self.assertEqual(
            {verb for verb, _ in final},
            {"FROM", "RUN", "COPY", "VOLUME", "WORKDIR", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT",
             "CMD", "ARG", "LABEL"},
        )  # fmt: skip
        self.assertEqual(value_of(final, "FROM"), "debian:12-slim")

    def test_ports_are_those_of_the_samples(self):
        _, final = instructions()
        self.assertEqual(value_of(final, "EXPOSE").split(), ["6379", "9121"])

    def test_labels_and_bake_file_have_the_same_arguments(self):
        build, final = instructions()
        declared = {words.rstrip("=") for verb, words in build + final if verb == "ARG"}
        bake = (ROOT / "docker-bake.hcl").read_text(encoding="ascii")
        passed = set(re.findall(r"^    (BLOOMERY_\w+) +=", bake, re.MULTILINE))
        self.assertEqual(declared, passed)
        labels = dict(re.findall(r'(org\.opencontainers\.image\.\w+)="([^"]*)"',
                                 value_of(final, "LABEL")))  # fmt: skip
        used = {value.lstrip("$") for value in labels.values() if value.startswith("$")}
        self.assertEqual(used, passed)
        self.assertEqual(labels["org.opencontainers.image.licenses"], "MIT")

    def test_the_build_stage_makes_what_is_copied(self):
        build, final = instructions()
        commands = " ".join(words for verb, words in build if verb == "RUN")
        stripped = commands.partition(" strip ")[2]
        copied = next(words for verb, words in final if verb == "COPY" and "--from=build" in words)
        for path in copied.split()[1:-1]:
            self.assertIn(f"--target {SERVER.name}", commands)
            self.assertIn(path.removeprefix("/src/"), stripped)
        self.assertIn("scripts/install_deps.sh server", commands)
        self.assertIn(f"--component licenses --prefix {LICENSES}", commands)
        self.assertIn(("COPY", f"--from=build {LICENSES}/share/doc/bloomery /{DOCUMENTS}"), final)


class ImageTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-image-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.root = cls.folder / "root"
        cls.build, cls.final = instructions()
        cls.why_not = ""
        try:
            make_root(cls.root)
            in_root(cls.root, "apt-get", "update", "-q")
            run("unshare", "--net", "chroot", cls.root, "true")
        except (AssertionError, OSError, subprocess.SubprocessError) as fault:
            cls.why_not = f"no root can be made here: {fault}"
            return
        cls.find_build_packages()
        cls.make_slim()
        for verb, words in cls.final:
            if verb == "RUN":
                in_root(cls.root, "sh", "-c", words)
            elif verb == "COPY":
                cls.copy(words)

    def setUp(self):
        super().setUp()
        if self.why_not:
            self.skipTest(self.why_not)

    @classmethod
    def find_build_packages(cls):
        """Checks that Debian has all packages that the build stage installs."""
        text = (ROOT / "scripts/install_deps.sh").read_text(encoding="ascii")
        packages = re.search(r"^server_packages=\(\n(.*?)^\)", text, re.MULTILINE | re.DOTALL)[1]
        boost = re.findall(r'"(libboost[^"]*)"', text)[-1]
        in_root(cls.root, "apt-get", "install", "-q", "--simulate", "--no-install-recommends",
                *packages.split(), *boost.split())  # fmt: skip

    @classmethod
    def make_slim(cls):
        excluded = "".join(f"path-exclude /{path}/*\n" for path in NOT_IN_SLIM)
        (cls.root / "etc/dpkg/dpkg.cfg.d/docker").write_text(excluded, encoding="ascii")
        for path in NOT_IN_SLIM:
            shutil.rmtree(cls.root / path, ignore_errors=True)
        # As in Docker's Debian images, apt keeps no downloaded packages and no caches.
        (cls.root / "etc/apt/apt.conf.d/docker-clean").write_text(
            'Dir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n'
            'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb || true"; };\n',
            encoding="ascii",
        )
        in_root(cls.root, "sh", "-c", "apt-get clean && rm -f /var/cache/apt/*.bin")
        # The base image has no package lists; apt-get update of the Dockerfile downloads them.
        in_root(cls.root, "sh", "-c", "rm -rf /var/lib/apt/lists/*")
        cls.base_mb = cls.megabytes()

    @classmethod
    def megabytes(cls):
        return int(run("du", "-sxm", cls.root).split()[0])

    @classmethod
    def copy(cls, words):
        *sources, target = words.split()
        into = cls.root / target.lstrip("/")
        into.mkdir(parents=True, exist_ok=True)
        for source in sources:
            if source.startswith("--from"):
                continue
            if source.startswith(LICENSES):
                run("cmake", "--install", BUILD, "--component", "licenses", "--prefix",
                    cls.folder / "licenses")  # fmt: skip
                place = cls.folder / "licenses" / pathlib.Path(source).relative_to(LICENSES)
                shutil.copytree(place, into, dirs_exist_ok=True)
                continue
            built = {SERVER.name: SERVER, "bloomery-cluster": CLUSTER_TOOL}
            name = pathlib.Path(source).name
            shutil.copy(built.get(name, ROOT / source), into / name)
            if name in built:
                run("strip", into / name)

    # The methods below run the image.

    def start(self, *arguments, user=None, environment=None):
        """Starts the image as `docker run` does, with a separate network. Returns a process whose
        output is the container's log.
        """
        script = 'ip link set lo up && cd "$1" && shift && exec "$@"'
        work = self.root / value_of(self.final, "WORKDIR").lstrip("/")
        entrypoint = json.loads(value_of(self.final, "ENTRYPOINT"))
        command = list(arguments) or json.loads(value_of(self.final, "CMD"))
        chroot = ["chroot", *([f"--userspec={user}"] if user else []), str(self.root)]
        inside = f'cd {value_of(self.final, "WORKDIR")} && exec "$@"'
        process = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", script, "-", work, *chroot, "sh", "-c", inside, "-",
             *entrypoint, *command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                 **(environment or {})},
        )  # fmt: skip
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.terminate()
        if not process.stdout.closed:
            log = process.communicate(timeout=DEADLINE_S)[0]
            self.assertEqual(process.returncode, 0, log)

    def inside(self, process, *command):
        """Runs a command in the container as `docker exec` does. Returns its exit status and
        output.
        """
        done = subprocess.run(
            ["nsenter", "-t", str(process.pid), "-n", "chroot", str(self.root), *command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEADLINE_S,
            check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.strip()

    def serve(self, *arguments, port=6379, **options):
        process = self.start(*arguments, **options)
        wait_until(
            lambda: self.inside(process, "redis-cli", "-p", str(port), "ping") == (0, "PONG"),
            lambda: f"{arguments}: an answer; exit {process.poll()}",
        )  # fmt: skip
        return process

    def owner(self, process):
        return os.stat(f"/proc/{process.pid}").st_uid

    def test_size(self):
        added = self.megabytes() - self.base_mb
        print(f"\nthe image: a base of {self.base_mb} MB and {added} MB, {SIZE_MB_MAX} are allowed")
        self.assertLessEqual(added, SIZE_MB_MAX)

    def test_licences(self):
        pages = self.root / DOCUMENTS
        self.assertIn("MIT License", (pages / "LICENSE").read_text(encoding="utf-8"))
        self.assertIn("Files: *", (pages / "copyright").read_text(encoding="utf-8"))
        for library in ("libcli11-dev", "libxxhash-dev"):  # no package of the image has these texts
            self.assertTrue((pages / f"licenses/{library}.gz").exists())

    def test_no_arguments_as_root(self):
        process = self.serve()
        self.assertEqual(self.owner(process), 999)
        self.assertEqual(self.inside(process, "redis-cli", "bf.add", "f", "x"), (0, "1"))
        self.assertEqual(self.inside(process, "valkey-cli", "bf.exists", "f", "x"), (0, "1"))
        # Protected mode must be off, because clients of a published port come from another network.
        self.assertEqual(
            self.inside(process, "redis-cli", "config", "get", "protected-mode"),
            (0, "protected-mode\nno"),
        )
        made = self.root / "data/appendonlydir"
        self.assertEqual((made.stat().st_uid, made.stat().st_mode & 0o077), (999, 0))
        self.end(process)
        # After a restart of the container, the data are still in its volume.
        process = self.serve()
        self.assertEqual(self.inside(process, "redis-cli", "bf.exists", "f", "x"), (0, "1"))

    def test_health_check(self):
        """Checks that the image has the health check script and the programs that the script calls.
        container_health_test.py tests what the script does.
        """
        (script,) = json.loads(value_of(self.final, "HEALTHCHECK").partition("CMD")[2])
        process = self.start("sh", "-c", f"exec {script}")
        said = process.communicate(timeout=DEADLINE_S)[0].strip()
        self.assertIn("no server", said)
        for program in ("xargs", "tr", "head"):
            in_root(self.root, "sh", "-c", f"command -v {program}")

    def test_flags_first(self):
        process = self.serve("--port", "7001", "--save", "60 1", "--appendonly", "no", port=7001)
        answer = self.inside(process, "redis-cli", "-p", "7001", "config", "get", "save")
        self.assertEqual(answer, (0, "save\n60 1"))

    def test_configuration_file(self):
        config = self.root / "etc/own.conf"
        config.write_text("port 7002\nprotected-mode yes\nmaxclients 77\n", encoding="ascii")
        for arguments in (["/etc/own.conf"], ["redis-server", "/etc/own.conf"]):
            process = self.serve(*arguments, "--maxclients", "78", port=7002)
            cli = ("redis-cli", "-p", "7002", "config", "get")
            self.assertEqual(self.inside(process, *cli, "maxclients"), (0, "maxclients\n78"))
            self.assertEqual(
                self.inside(process, *cli, "protected-mode"), (0, "protected-mode\nyes")
            )
            self.end(process)

    def test_names_of_other_servers(self):
        for name in ("redis-server", "valkey-server", "bloomery-server"):
            process = self.serve(name, "--appendonly", "no")
            self.assertEqual(self.owner(process), 999)
            self.end(process)

    def test_flags_of_the_environment(self):
        process = self.serve(
            "--maxclients", "50", environment={
                "VALKEY_EXTRA_FLAGS": "--maxclients 60 --hz 20", "REDIS_ARGS": "--databases 3",
            },
        )  # fmt: skip
        for option, value in (("maxclients", "60"), ("hz", "20"), ("databases", "3")):
            answer = self.inside(process, "redis-cli", "config", "get", option)
            self.assertEqual(answer, (0, f"{option}\n{value}"))

    def test_another_user(self):
        """With `docker run --user 1234` the entrypoint does not change the owner of the volume, so
        the volume must belong to user 1234 already.
        """
        data = self.root / "data"
        os.chown(data, 1234, 1234)
        for path in data.rglob("*"):
            os.chown(path, 1234, 1234)
        process = self.serve("--port", "7003", user="1234:1234", port=7003)
        self.assertEqual(self.owner(process), 1234)

    def test_other_commands(self):
        for command, said in (
            (["redis-cli", "--version"], "redis-cli 7"),
            (["sh", "-c", "id -u"], "0\n"),
            (["bloomery-cluster", "--version"], "bloomery"),
            (["bloomery-server", "--version"], "bloomery"),
            (["--version"], "bloomery"),
            (["--help"], "usage"),
        ):
            process = self.start(*command, environment={"VALKEY_EXTRA_FLAGS": "--hz 20"})
            self.assertIn(said, process.communicate(timeout=DEADLINE_S)[0].lower(), command)


if __name__ == "__main__":
    unittest.main()
