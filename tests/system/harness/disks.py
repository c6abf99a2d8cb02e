# SPDX-License-Identifier: MIT
"""Disks that tests can fill or cut from power. The tests must run as root.

All mounts are made in a mount namespace of the test. The kernel removes them when the last process
of the namespace ends, even by SIGKILL. It removes a loop device together with its mount.
"""

import array
import ctypes
import fcntl
import os
import pathlib
import subprocess
import tempfile

CLONE_NEWNS = 0x00020000
PAGE_BYTES = 4096
# _IOR('X', 125, __u32) of the kernel's ext4.h. After this ioctl no byte reaches the disk.
EXT4_IOC_SHUTDOWN = 0x8004587D
EXT4_GOING_FLAGS_NOLOGFLUSH = 2


def run(*command):
    subprocess.run([str(word) for word in command], check=True, stderr=subprocess.PIPE, text=True)


def enter_own_namespace():
    """Moves this process into a new mount namespace. Must be called once, before any thread is
    started. Raises OSError if the machine forbids namespaces.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    run("mount", "--make-rprivate", "/")


def why_no_mounts():
    """Moves this process into a new mount namespace. Returns why mounts fail there, or "" if they
    work.
    """
    try:
        enter_own_namespace()
        disk = Tmpfs(1 << 20)
        disk.remove()
        return ""
    except (OSError, subprocess.CalledProcessError) as error:
        return f"mounts do not work here: {getattr(error, 'stderr', None) or error}"


class Disk:
    """A file system that stays mounted at `path` until remove()."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-disk-"))

    def remove(self):
        subprocess.run(["umount", "--lazy", self.path], check=False, stderr=subprocess.DEVNULL)
        self.path.rmdir()

    def free_bytes(self):
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize

    def fill(self, leave_bytes=0):
        """Fills the disk page by page, and leaves `leave_bytes` bytes free. If one allocation of
        several pages failed, the kernel would free all of these pages, and the server could still
        write.
        """
        with open(self.path / "filler", "ab") as file:
            size = file.tell()
            while self.free_bytes() > leave_bytes:
                try:
                    os.posix_fallocate(file.fileno(), size, PAGE_BYTES)
                except OSError:
                    return
                size += PAGE_BYTES

    def free(self):
        (self.path / "filler").unlink()


class Tmpfs(Disk):
    def __init__(self, size_bytes):
        super().__init__()
        run("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "bloomery-test", self.path)


class PowerDisk(Disk):
    """An ext4 file system on a loop device, whose power a test can cut."""

    def __init__(self, size_mib=64):
        super().__init__()
        self.image = pathlib.Path(tempfile.mkstemp(prefix="bloomery-image-")[1])
        os.truncate(self.image, size_mib << 20)
        run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", self.image)
        self.mount()

    def mount(self):
        run("mount", "-o", "loop", self.image, self.path)

    def cut_power(self):
        """Cuts the power: unsynced data are lost, and every later system call on the disk fails."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            flags = array.array("I", [EXT4_GOING_FLAGS_NOLOGFLUSH])
            fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, flags)
        finally:
            os.close(descriptor)

    def restore_power(self):
        """Mounts the disk again after cut_power(). REQUIRES: no process has a file of this disk
        open.
        """
        run("umount", self.path)
        self.mount()

    def remove(self):
        super().remove()
        self.image.unlink()
