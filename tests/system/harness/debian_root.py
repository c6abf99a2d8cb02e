# SPDX-License-Identifier: MIT
"""A bare Debian 12 in a directory, for tests that install into it.

It is made once by debootstrap and kept as an archive in the build folder. BLOOMERY_DEBIAN_MIRROR
names another mirror than Debian's own.
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
    """Fills the folder with a bare Debian. Raises AssertionError or OSError if that fails."""
    archive = BUILD / "debian-bookworm.tar"
    with open(f"{archive}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            run("debootstrap", "--variant=minbase", "bookworm", root, MIRROR, timeout_s=400)
            # The archive gets its name when it is complete, so that no run uses a part of it.
            run("tar", "-C", root, "--numeric-owner", "-cf", f"{archive}.new", ".")
            os.replace(f"{archive}.new", archive)
            return
    root.mkdir(parents=True, exist_ok=True)
    run("tar", "-C", root, "--numeric-owner", "-xpf", archive)


def in_root(root, *command, timeout_s=280):
    """Runs a command in the bare Debian at `root`, on this machine's network."""
    environment = {
        **os.environ, "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C",
    }  # fmt: skip
    return run("chroot", root, *command, timeout_s=timeout_s, env=environment)
