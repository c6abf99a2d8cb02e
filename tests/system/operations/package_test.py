# SPDX-License-Identifier: MIT
"""Tests the Debian package in a container with a bare Debian 12. The test builds and installs the
package, starts the server by its systemd unit, and upgrades, removes and purges the package.

If no container can be made (no mirror, no rights), the test that needs it is skipped with the
reason.
"""

import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import DEADLINE_S, ROOT, SERVER, ServerTest, wait_until
from harness.debian_root import BUILD, in_root, make_root, run

UNIT = ROOT / "conf/package/bloomery-server.service"


class UnitTest(unittest.TestCase):
    def test_systemd_understands_the_unit(self):
        with tempfile.TemporaryDirectory() as folder:
            # The program under test is not in /usr/bin, so the test replaces this path in the
            # systemd unit.
            text = UNIT.read_text(encoding="ascii").replace("/usr/bin/bloomery-server", str(SERVER))
            unit = pathlib.Path(folder) / UNIT.name
            unit.write_text(text, encoding="ascii")
            self.assertEqual(run("systemd-analyze", "verify", "--man=no", unit), "")
            report = json.loads(run("systemd-analyze", "security", "--offline=yes",
                                    "--json=short", unit))  # fmt: skip
            open_doors = sorted(
                row["name"] for row in report
                if row["exposure"] is not None and float(row["exposure"] or 0) >= 0.3
            )  # fmt: skip
            # The unit cannot use these two restrictions: the server needs the network.
            self.assertEqual(
                open_doors, ["PrivateNetwork=", "RestrictAddressFamilies=~AF_(INET|INET6)"]
            )


class PackageTest(ServerTest):
    """Boots Debian in a container with its own network, and installs the package in the running
    container.
    """

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-package-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        run("cpack", "-B", cls.folder / "pack", cwd=BUILD)
        (cls.package,) = (cls.folder / "pack").glob("*.deb")
        cls.why_no_container = ""
        try:
            cls.make_container()
        except (AssertionError, OSError, subprocess.SubprocessError) as fault:
            cls.why_no_container = f"no container can be made here: {fault}"
            return
        wait_until(cls.is_booted_or_over, "the container's start", timeout_s=240)
        if cls.container.poll() is not None:
            cls.why_no_container = f"no container runs here: {cls.container.returncode}"

    @classmethod
    def make_container(cls):
        cls.root = cls.folder / "root"
        make_root(cls.root)
        install = ("apt-get", "install", "-q", "-y", "--no-install-recommends")
        in_root(cls.root, "apt-get", "update", "-q")
        in_root(cls.root, *install, "systemd", "systemd-sysv")
        # Downloads the package's dependencies, because the booted container has no network.
        shutil.copy(cls.package, cls.root / "bloomery.deb")
        in_root(cls.root, *install, "--download-only", "/bloomery.deb")
        cls.boot()

    @classmethod
    def boot(cls):
        cls.container = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot",
             "--private-network", "--console=pipe", "-D", cls.root],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        cls.addClassCleanup(cls.power_off)

    @classmethod
    def power_off(cls):
        cls.container.terminate()
        cls.container.wait(DEADLINE_S)

    @classmethod
    def is_booted_or_over(cls):
        return cls.container.poll() is not None or cls.is_booted()

    @classmethod
    def is_booted(cls):
        done = subprocess.run(
            ["pgrep", "-P", str(cls.container.pid)], capture_output=True, text=True, check=False
        )
        if not done.stdout:
            return False
        cls.init = done.stdout.split()[0]
        state = subprocess.run(
            [*cls.enter(), "systemctl", "is-system-running"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return state.stdout.strip() in ("running", "degraded")

    @classmethod
    def enter(cls):
        return ["nsenter", "-t", cls.init, "-m", "-u", "-i", "-n", "-p", "-C"]

    def seen_root(self):
        """Returns the path at which the host sees the container's root directory and its mounts."""
        return pathlib.Path("/proc") / self.init / "root"

    def inside(self, *command):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
        return run(*self.enter(), *command, env=environment)

    def install(self, package):
        shutil.copy(package, self.seen_root() / "bloomery.deb")
        self.inside("apt-get", "install", "-q", "-y", "--no-install-recommends", "/bloomery.deb")

    def next_version(self):
        """Makes the same package with a higher version, for an upgrade."""
        content = self.folder / "content"
        run("dpkg-deb", "-R", self.package, content)
        control = content / "DEBIAN/control"
        text = control.read_text(encoding="utf-8")
        version = next(line for line in text.splitlines() if line.startswith("Version:"))
        control.write_text(text.replace(version, version + "+next"), encoding="utf-8")
        package = self.folder / "next.deb"
        run("dpkg-deb", "--root-owner-group", "-b", content, package)
        return package

    def redis_cli(self, *words):
        """Runs redis-cli on the host, through the unix socket in the container."""
        path = self.seen_root() / "run/bloomery/bloomery.sock"
        return run("redis-cli", "-s", path, *words).strip()

    def show(self, what):
        return self.inside("systemctl", "show", "-P", what, "bloomery-server.service").strip()

    def test_package_has_maintainer_licences_changes(self):
        cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
        maintainer = re.search(r"^BLOOMERY_MAINTAINER:STRING=(.*)$", cache, re.MULTILINE)[1]
        named = run("dpkg-deb", "-f", self.package, "Maintainer").strip()
        self.assertEqual(named, maintainer or "the Bloomery authors <bloomery@localhost>")
        content = self.folder / "licensed"
        run("dpkg-deb", "-x", self.package, content)
        pages = content / "usr/share/doc/bloomery"
        address = maintainer or "the maintainer (this build is no release and names none)"
        security = (pages / "SECURITY.md").read_text(encoding="utf-8")
        self.assertIn(f"Write to {address}.", security)
        self.assertIn("[Unreleased]", (pages / "CHANGELOG.md").read_text(encoding="utf-8"))
        texts = {path.stem: gzip.decompress(path.read_bytes())
                 for path in (pages / "licenses").iterdir()}  # fmt: skip
        # The package must have the license of each library that the program uses.
        for library in ("boost", "cli11", "fmt", "isal", "jemalloc", "lzf", "prometheus", "spdlog",
                        "ssl", "systemd", "xxhash"):  # fmt: skip
            (name,) = [name for name in texts if library in name]
            self.assertIn(b"Copyright", texts[name], name)

    def test_pages_link_to_installed_files(self):
        content = self.folder / "linked"
        run("dpkg-deb", "-x", self.package, content)
        pages = content / "usr/share/doc/bloomery"
        for page in pages.rglob("*.md"):
            # commands.md has the text of the pages in docs/parts, and resolves their links.
            if page.parent.name == "parts":
                continue
            for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
                if "://" not in link:
                    self.assertTrue((page.parent / link).exists(), f"{page}: {link}")

    def test_installation_by_cmake(self):
        """`cmake --install` keeps a configuration, and its unit starts the installed program."""
        for prefix, is_new in (("/usr/local", True), ("/usr/local", False), ("/opt/own", False)):
            stage = self.folder / "stage"
            config = stage / "etc/bloomery/bloomery.conf"
            if not is_new:
                config.write_text("port 7\n", encoding="ascii")
            run("cmake", "--install", BUILD, "--prefix", prefix,
                env={**os.environ, "DESTDIR": str(stage)})  # fmt: skip
            text = config.read_text("utf-8")
            self.assertEqual(text == "port 7\n", not is_new)
            place = stage / prefix.lstrip("/")
            unit = (place / "lib/systemd/system" / UNIT.name).read_text(encoding="ascii")
            self.assertIn(f"\nExecStart={prefix}/bin/bloomery-server /etc/bloomery/", unit)
            self.assertTrue((place / "bin/bloomery-server").exists())

    def check_removal_and_return(self):
        """Whether the service is enabled outlives the removal of the package."""
        link = "/etc/systemd/system/multi-user.target.wants/bloomery-server.service"
        for is_enabled in (True, False):
            if not is_enabled:
                self.inside("systemctl", "disable", "--now", "bloomery-server")
            self.inside("apt-get", "remove", "-q", "-y", "bloomery")
            self.inside("test", "!", "-L", link)
            self.inside("test", "-d", "/var/lib/bloomery/appendonlydir")
            self.inside("test", "!", "-e", "/usr/bin/bloomery-server")
            self.assertEqual(self.show("ActiveState"), "inactive")
            self.install(self.package)
            self.assertEqual(self.show("UnitFileState"), "enabled" if is_enabled else "disabled")
            self.assertEqual(self.show("ActiveState"), "active" if is_enabled else "inactive")
        self.inside("systemctl", "enable", "--now", "bloomery-server")
        # An upgrade does not start a service that an administrator has stopped.
        self.inside("systemctl", "stop", "bloomery-server")
        self.install(self.folder / "next.deb")
        self.assertEqual(self.show("ActiveState"), "inactive")
        # Version 1.0.0 kept no record of a disabled service. Its upgrade does not enable it.
        self.inside("systemctl", "disable", "bloomery-server")
        record = "/var/lib/systemd/deb-systemd-helper-enabled/bloomery-server.service.dsh-also"
        self.inside("rm", record)
        self.inside("dpkg", "--install", "/bloomery.deb")
        self.assertEqual(self.show("UnitFileState"), "disabled")
        self.assertEqual(self.show("ActiveState"), "inactive")
        self.inside("systemctl", "enable", "bloomery-server")

    def check_group_of_the_socket(self):
        """The restrictions of the unit allow unixsocketgroup."""
        self.inside("groupadd", "web")
        unit = self.seen_root() / "etc/systemd/system/bloomery-server.service.d"
        unit.mkdir()
        (unit / "group.conf").write_text("[Service]\nSupplementaryGroups=web\n", encoding="ascii")
        config = self.seen_root() / "etc/bloomery/bloomery.conf"
        with config.open("a", encoding="ascii") as file:
            file.write("unixsocketgroup web\n")
        self.inside("systemctl", "daemon-reload")
        self.inside("systemctl", "restart", "bloomery-server")
        group = self.inside("stat", "-c", "%G", "/run/bloomery/bloomery.sock").strip()
        self.assertEqual(group, "web")

    def test_install_serve_upgrade_remove_purge(self):
        if self.why_no_container:
            self.skipTest(self.why_no_container)
        self.install(self.package)
        self.assertEqual(self.show("ActiveState"), "active")
        self.assertEqual(self.show("UnitFileState"), "enabled")
        self.assertEqual(self.show("StatusText"), "Ready to accept connections")
        owners = self.inside(
            "stat", "-c", "%U:%G %a", "/etc/bloomery/bloomery.conf", "/var/lib/bloomery"
        )
        self.assertEqual(owners.split("\n")[:2], ["bloomery:bloomery 640", "bloomery:bloomery 750"])
        for program in ("bloomery-server", "bloomery-cluster"):
            self.inside("test", "-s", f"/usr/share/man/man1/{program}.1")
            self.inside(program, "--version")
        for shared in ("prometheus-alerts.yml", "grafana-dashboard.json"):
            self.inside("test", "-s", f"/usr/share/bloomery/{shared}")
        self.assertEqual(
            self.inside("bloomery-server", "--health-check").strip(), "port 6379 answers +PONG"
        )

        # These commands write files, which the restrictions of the systemd unit must allow.
        self.assertEqual(self.redis_cli("bf.add", "kept", "item"), "1")
        self.assertEqual(self.redis_cli("config", "set", "maxclients", "777"), "OK")
        self.assertEqual(self.redis_cli("config", "rewrite"), "OK")
        for command in ("save", "bgrewriteaof", "bgsave"):
            self.redis_cli(command)
            wait_until(
                lambda: "rdb_bgsave_in_progress:0" in self.redis_cli("info", "persistence")
                and "aof_rewrite_in_progress:0" in self.redis_cli("info", "persistence"),
                command,
            )  # fmt: skip
        persistence = self.redis_cli("info", "persistence")
        self.assertIn("rdb_last_bgsave_status:ok", persistence)
        self.assertIn("aof_last_bgrewrite_status:ok", persistence)

        for restart in (
            lambda: self.inside("systemctl", "restart", "bloomery-server"),
            # systemd restarts the killed server.
            lambda: self.inside("systemctl", "kill", "-s", "KILL", "bloomery-server"),
            # An upgrade of the package keeps the data and the changed configuration.
            lambda: self.install(self.next_version()),
        ):
            before = self.show("MainPID")
            restart()
            wait_until(
                lambda before=before: self.show("MainPID") not in ("0", before)
                and self.show("ActiveState") == "active", "the next start",
            )  # fmt: skip
            self.assertEqual(self.redis_cli("bf.exists", "kept", "item"), "1")
            self.assertEqual(self.redis_cli("config", "get", "maxclients"), "maxclients\n777")
        log = self.inside("journalctl", "-o", "cat", "-u", "bloomery-server")
        self.assertEqual([line for line in log.splitlines() if " # " in line], [])

        self.check_group_of_the_socket()
        self.check_removal_and_return()
        self.inside("rm", "-r", "/etc/systemd/system/bloomery-server.service.d")
        self.inside("apt-get", "purge", "-q", "-y", "bloomery")
        left = self.inside("find", "/etc", "/usr", "/var/lib", "/var/log", "-name", "*bloomery*")
        self.assertEqual([line for line in left.split() if "/apt/" not in line], [])
        self.assertNotIn("bloomery", self.inside("cat", "/etc/passwd", "/etc/group"))


if __name__ == "__main__":
    unittest.main()
