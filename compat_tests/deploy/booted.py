"""A Debian that systemd has booted, in namespaces of its own: to try a unit as an administrator does.

It sees neither this machine's network, nor its processes, nor its control groups, and may not change the kernel's
settings.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from compat_tests.deploy import rootfs
from compat_tests.support.waiting import eventually

NAMESPACES: Final = ("mount", "pid", "net", "ipc", "uts", "cgroup")
DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
NOT_NEEDED: Final = (
    "getty@.service",
    "console-getty.service",
    "systemd-logind.service",
    "systemd-networkd-wait-online",
)


class Machine:
    """The booted system: run commands in it as root."""

    def __init__(self, root: Path, process: rootfs.Process) -> None:
        self.root = root
        self.process = process

    def attempt(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """The result of a command, whatever it is."""
        assigned = [f"{name}={value}" for name, value in {"PATH": rootfs.PATH, **variables}.items()]
        entered = self.process.enter(["env", "-i", *assigned, *command], *NAMESPACES)
        return subprocess.run(entered, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)

    def run(self, *command: str, **variables: str) -> str:
        """What a command prints. Fails if it does."""
        done = self.attempt(*command, **variables)
        assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}"
        return done.stdout

    def show(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).strip()

    def journal(self, unit: str) -> str:
        """What a unit has printed since its last start."""
        return self.run("journalctl", "--output=cat", f"_SYSTEMD_INVOCATION_ID={self.show(unit, 'InvocationID')}")


@contextmanager
def boot(root: Path) -> Iterator[Machine]:
    """systemd as process 1 of `root`, until the end of the block."""
    for unit in NOT_NEEDED:
        (root / "etc" / "systemd" / "system" / unit).symlink_to("/dev/null")
    with _control_group() as group:
        process = rootfs.start_in(root, _boot_script(root), root.with_suffix(".log"), group)
        machine = Machine(root, process)
        try:
            eventually(lambda: _is_up(machine), "systemd has booted")
            yield machine
        finally:
            process.parent.kill()
            process.parent.wait()


def _is_up(machine: Machine) -> bool:
    if machine.process.parent.poll() is not None:
        pytest.fail(f"systemd ended: {machine.root.with_suffix('.log').read_text()}")
    return machine.attempt("systemctl", "is-system-running").stdout.strip() in ("running", "degraded")


def _boot_script(root: Path) -> str:
    devices = "\n".join(f"touch {root}/dev/{name}; mount --bind /dev/{name} {root}/dev/{name}" for name in DEVICES)
    return f"""
        mount --bind {root} {root}
        mount -t proc proc {root}/proc
        mount --bind {root}/proc/sys {root}/proc/sys
        mount -o remount,bind,ro {root}/proc/sys
        mount -t sysfs -o ro sysfs {root}/sys
        mount -t cgroup2 cgroup2 {root}/sys/fs/cgroup
        mount -t tmpfs tmpfs {root}/run
        mount -t tmpfs tmpfs {root}/tmp
        mount -t tmpfs tmpfs {root}/dev
        mkdir {root}/dev/pts {root}/dev/shm {root}/run/outside
        mount -t devpts -o newinstance,ptmxmode=0666 devpts {root}/dev/pts
        ln -s pts/ptmx {root}/dev/ptmx
        mount -t tmpfs tmpfs {root}/dev/shm
        {devices}
        cd {root}
        pivot_root . run/outside
        umount -l /run/outside
        exec env -i container=test /lib/systemd/systemd --system
        """


@contextmanager
def _control_group() -> Iterator[Path]:
    """An empty control group below the root of cgroup2, removed at the end with those that systemd made in it."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    (top, *_) = [Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"]
    group = top / f"kpybroker-test-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        eventually(lambda: _remove(group), "the processes of the control group have ended")


def _remove(group: Path) -> bool:
    folders = [group, *(path for path in group.rglob("*") if path.is_dir())]
    try:
        for folder in sorted(folders, reverse=True):
            folder.rmdir()
    except OSError:
        return False
    return True
