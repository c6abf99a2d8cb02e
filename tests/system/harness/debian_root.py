# SPDX-License-Identifier: MIT
"""Creates a minimal Debian 12 in a directory, for tests that install packages there.

debootstrap creates this Debian once, and an archive in the build folder keeps it.
BLOOMERY_DEBIAN_MIRROR is the URL of the mirror, by default Debian's own.
"""

import fcntl
import os
import subprocess

from harness import SERVER

BUILD = SERVER.parent
MIRROR = os.environ.get("BLOOMERY_DEBIAN_MIRROR", "http://deb.debian.org/debian")


def run(*command, timeout_s=240, **options):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=timeout_s,
        check=False, errors="replace", **options,
    )  # fmt: skip
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def make_root(root):
    """Fills the directory `root` with a minimal Debian. Raises AssertionError or OSError on
    failure.
    """
    archive = BUILD / "debian-bookworm.tar"
    with open(f"{archive}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            run("debootstrap", "--variant=minbase", "bookworm", root, MIRROR, timeout_s=400)
            # The archive gets its final name only when it is complete, so that no test unpacks an
            # incomplete archive.
            run("tar", "-C", root, "--numeric-owner", "-cf", f"{archive}.new", ".")
            os.replace(f"{archive}.new", archive)
            return
    root.mkdir(parents=True, exist_ok=True)
    run("tar", "-C", root, "--numeric-owner", "-xpf", archive)


def in_root(root, *command, timeout_s=280):
    """Runs a command by chroot in the Debian at `root`, with this machine's network."""
    environment = {
        **os.environ, "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C",
    }  # fmt: skip
    return run("chroot", root, *command, timeout_s=timeout_s, env=environment)
