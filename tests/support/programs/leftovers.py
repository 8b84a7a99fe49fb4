"""What a broker of `kpybroker.testing` could leave behind: processes, ports, files, descriptors, threads."""

from __future__ import annotations

import multiprocessing
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from kpybroker.testing import Brokers

SECONDS_MAX = 120.0


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Fails the test if it does not come true."""
    end = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def is_bound(port: int) -> bool:
    """Whether a process listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def descriptors() -> dict[str, str]:
    """The open descriptors of this process, with what they are."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            pass  # that of the listing
    return found


def in_own_process(check: Callable[..., None], *arguments: Any) -> None:
    """Run `check`, a function of a module: what other tests have in this process opens and closes descriptors too."""
    process = multiprocessing.get_context("spawn").Process(target=check, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == 0, f"{check.__name__} failed: its traceback is above"


def assert_no_more_than(before: set[tuple[str, str]]) -> None:
    """Soon this process has no other descriptors than `before`."""
    eventually(lambda: not set(descriptors().items()) - before, "no descriptor is left")


def broker_pid(brokers: Brokers) -> int:
    """The process of brokers that run."""
    pid: int = brokers.status()["pid"]
    return pid


class Trace:
    """What brokers take while they run; `assert_gone` after their end."""

    def __init__(self, *all_brokers: Brokers) -> None:
        self.pids = {broker_pid(brokers) for brokers in all_brokers} - {os.getpid()}
        self.ports = [int(server.rpartition(":")[2]) for brokers in all_brokers for server in servers(brokers)]
        self.ports += [brokers.channel.address[1] for brokers in all_brokers]
        self.directories = [Path(brokers.data_dir) for brokers in all_brokers]
        assert all(map(is_bound, self.ports))
        assert all(directory.exists() for directory in self.directories)

    def assert_gone(self) -> None:
        """Processes and ports at once, since `stop` has returned; files too."""
        assert [pid for pid in self.pids if psutil.pid_exists(pid)] == []
        assert [port for port in self.ports if is_bound(port)] == []
        assert [str(one) for one in self.directories if one.exists()] == []

    def wait_gone(self) -> None:
        """As `assert_gone`, soon: the end was not requested by this process."""
        eventually(lambda: not any(map(psutil.pid_exists, self.pids)), f"processes are left: {self.pids}")
        eventually(lambda: not any(map(is_bound, self.ports)), f"ports are left: {self.ports}")
        eventually(lambda: not any(one.exists() for one in self.directories), f"files are left: {self.directories}")


def servers(brokers: Brokers) -> list[str]:
    """The address of each broker."""
    return brokers.bootstrap_servers.split(",")


def broker_threads() -> list[str]:
    """Threads of this process that belong to brokers, but for trio's idle workers, which end by themselves."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("kpybroker")]
