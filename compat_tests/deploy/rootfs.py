"""Fresh root file systems, and processes that run in one as in a container: no engine, only the kernel's namespaces.

A base is Debian with Python, made by debootstrap and kept in `.cache/rootfs`; a test changes only a copy.
Everything here needs root. Nothing outside the copy is changed: mounts are in a namespace that ends with its process.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from compat_tests.packaging.pythons import ROOT
from compat_tests.support.waiting import eventually

BASE: Final = ROOT / ".cache" / "rootfs" / "base"
PACKAGES: Final = ("python3", "python3-venv", "python3-pip", "ca-certificates", "systemd", "dbus")
SECONDS_MAX: Final = 300
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FROM_HOST: Final = ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt")
"""How this machine reaches a package index, as a container engine gives it to a build."""


def why_not() -> str | None:
    """What this machine lacks for these tests; None if nothing."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [name for name in ("debootstrap", "unshare", "nsenter", "ip") if shutil.which(name) is None]
    return f"needs {', '.join(missing)}" if missing else None


def base() -> Path:
    """The base; the first call takes a minute or two."""
    if not BASE.is_dir():
        fresh = BASE.with_name(f"base.{os.getpid()}")
        fresh.parent.mkdir(parents=True, exist_ok=True)
        run(
            ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", "bookworm", fresh], seconds_max=1800
        )
        for name, target in (("python", "python3"), ("pip", "pip3")):  # where the images of Python have them
            (fresh / "usr" / "local" / "bin" / name).symlink_to(f"/usr/bin/{target}")
        fresh.rename(BASE)
    return BASE


def copy(place: Path) -> Path:
    """A copy of the base in `place`, which reaches the network as this machine does."""
    run(["cp", "-a", "--reflink=auto", base(), place])
    for name in _FROM_HOST:
        shutil.copyfile(f"/{name}", place / name)
    return place


def run(command: Sequence[str | Path], seconds_max: float = SECONDS_MAX) -> str:
    """What a command prints, standard error included. Fails with it if the command does."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds_max
    )
    assert done.returncode == 0, f"{shlex.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout


def run_in(root: Path, command: str, variables: Mapping[str, str] | None = None) -> str:
    """What a shell command prints in `root`, as root and with this machine's network, as in the build of an image."""
    given = {"PATH": PATH, **{name: os.environ[name] for name in os.environ if name.startswith("PIP_")}}
    given.pop("PIP_FIND_LINKS", None)
    script = f"mount -t proc proc {root}/proc && exec chroot {root} env -i {_assigned({**given, **(variables or {})})} "
    return run(["unshare", "--mount", "--pid", "--fork", "sh", "-ec", script + f"sh -ec {shlex.quote(command)}"])


class Process(NamedTuple):
    """The first process of its own namespaces, and the `unshare` that waits for it."""

    parent: subprocess.Popen[str]
    pid: int

    def enter(self, command: Sequence[str | Path], *namespaces: str) -> list[str]:
        """`command` in these namespaces of the process (`net`, `pid`, `mount`)."""
        return ["nsenter", f"--target={self.pid}", *(f"--{name}" for name in namespaces), *map(str, command)]

    def stop(self, number: int = signal.SIGTERM, seconds_max: float = 60) -> int:
        """Send a signal to the process, not to what waits for it; the exit code."""
        os.kill(self.pid, number)
        return self.parent.wait(seconds_max)


def start_in(root: Path, script: str, output: Path, cgroup: Path | None = None) -> Process:
    """The shell script as process 1 of new namespaces with loopback alone; it ends with `exec`.

    The script runs outside `root`, so that it can mount before `chroot`. Its output goes to a file. With `cgroup`, all
    its processes are in that group, and see it as the root of all groups.
    """
    unshare = "unshare --mount --pid --net --ipc --uts --cgroup --fork --kill-child sh -ec"
    prepared = f"ip link set lo up; mount -t proc proc {root}/proc; {script}"
    join = "" if cgroup is None else f"echo $$ > {cgroup}/cgroup.procs; "
    with output.open("wb") as out:
        command = ["sh", "-ec", f"{join}exec {unshare} {shlex.quote(prepared)}"]
        parent = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, text=True)
    return Process(parent, _child(parent))


def _child(parent: subprocess.Popen[str]) -> int:
    """What `unshare` has forked. (A shell that begins with `exec` forks nothing before.)"""
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")

    def forked() -> int:
        if parent.poll() is not None:
            pytest.fail(f"unshare ended with exit code {parent.returncode}")
        found = children.read_text().split()
        return int(found[0]) if found else 0

    return eventually(forked, "unshare has started its process")


def _assigned(variables: Mapping[str, str]) -> str:
    return " ".join(shlex.quote(f"{name}={value}") for name, value in variables.items())


def as_user(root: Path, user: str, directory: str, variables: Mapping[str, str], command: Sequence[str]) -> str:
    """The last line of a script for `start_in`: `command` in `root`, without any privilege."""
    numbers = user.partition(":")
    drop = f"setpriv --reuid={numbers[0]} --regid={numbers[2]} --clear-groups --no-new-privs --bounding-set=-all"
    inside = f"cd {shlex.quote(directory)} && exec {drop} --inh-caps=-all env -i {_assigned(variables)} "
    return f"exec chroot {root} sh -ec {shlex.quote(inside + shlex.join(command))}"
