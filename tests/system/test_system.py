"""What the operating system has is found out once; portable mode hides all that not every system has."""

from __future__ import annotations

import ast
import errno
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import kpybroker
from kpybroker.system import IS_PORTABLE, files, processes, sockets

PACKAGE = Path(kpybroker.__file__).parent


def flags(portable: str) -> dict[str, bool]:
    """What another process finds."""
    program = (
        "from kpybroker import system\n"
        "from kpybroker.system import files, sockets\n"
        "found = {**vars(system), **vars(files), **vars(sockets)}\n"
        f"print({{name: bool(found[name]) for name in {NAMES!r}}})"
    )
    environment = {**os.environ, "KPYBROKER_PORTABLE": portable}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    found: dict[str, bool] = ast.literal_eval(done.stdout)
    return found


NAMES = (
    "IS_PORTABLE",
    "HAS_EPOLL",
    "HAS_POLL",
    "HAS_SENDFILE",
    "HAS_SENDMSG",
    "HAS_POSIX_FILES",
    "HAS_FLOCK",
    "MSG_MORE",
    "RWF_NOWAIT",
    "pread",
    "pwrite",
    "preadv",
    "sendfile",
    "sendmsg",
)


def test_portable_mode_has_nothing_that_not_every_system_has() -> None:
    assert flags("1") == {name: name == "IS_PORTABLE" for name in NAMES}


@pytest.mark.skipif(sys.platform != "linux", reason="what Linux has")
@pytest.mark.parametrize("value", ["", "0", "true"])
def test_only_one_value_asks_for_portable_mode(value: str) -> None:
    assert flags(value) == {name: name != "IS_PORTABLE" for name in NAMES}


def test_differences_between_systems_are_in_one_package() -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.platform", "os.name"))
        or (isinstance(node, ast.Attribute) and ast.unparse(node) in POSIX_ONLY)
        or (isinstance(node, ast.Import) and any(alias.name in MODULES for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module in MODULES)
    }
    assert {file for file in found if not file.startswith("system/")} == set()


MODULES = {"fcntl", "resource", "msvcrt", "ctypes", "pwd", "grp", "termios"}
POSIX_ONLY = {"select.epoll", "select.poll", "select.kqueue"} | {
    f"os.{name}"
    for name in (
        "pread",
        "pwrite",
        "preadv",
        "sendfile",
        "statvfs",
        "fdatasync",
        "nice",
        "fork",
        "getuid",
        "O_DIRECTORY",
    )
}


def test_a_port_that_is_listened_on_is_taken_and_one_just_left_is_not() -> None:
    with socket.socket() as first:
        sockets.claim_port(first)
        first.bind(("127.0.0.1", 0))
        first.listen()
        address = first.getsockname()
        with socket.socket() as second:
            sockets.claim_port(second)
            with pytest.raises(OSError):
                second.bind(address)
        with socket.create_connection(address) as client:
            accepted, _ = first.accept()
            accepted.close()  # the side that closes first keeps the port for a while
            assert client.recv(1) == b""
    with socket.socket() as third:
        sockets.claim_port(third)
        third.bind(address)


def test_the_limit_of_descriptors_is_that_of_the_process() -> None:
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "from kpybroker.system.processes import descriptors_max\n"
        "print(descriptors_max(), sys.maxsize)\n"
    )
    environment = {**os.environ, "KPYBROKER_PORTABLE": ""}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "256"


@pytest.mark.parametrize("portable", ["", "1"])
def test_the_end_of_another_process_is_noticed(portable: str) -> None:
    program = (
        "import sys\n"
        "from kpybroker.system.processes import wait_for_end_of\n"
        "wait_for_end_of(int(sys.argv[1]))\n"
        "print('ended')"
    )
    environment = {**os.environ, "KPYBROKER_PORTABLE": portable}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        command = [sys.executable, "-c", program, str(other.pid)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as waiting:
            assert waiting.stdout is not None
            assert waiting.poll() is None
            other.communicate(b"\n")
            assert waiting.stdout.read() == "ended\n"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "ended\n", "it ended long ago"


def file_system_of(path: Path) -> str:
    """By the mount that the path is below."""
    mounts = [line.split(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    found = {before.split()[4]: after.split()[0] for before, after in mounts}
    return found[next(str(place) for place in (path, *path.parents) if str(place) in found)]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's call")
def test_a_file_system_is_synced_at_once_where_that_is_as_good_as_each_file(tmp_path: Path) -> None:
    newer = tuple(int(number) for number in os.uname().release.split("-")[0].split(".")[:2]) >= (5, 8)
    for path in (tmp_path, Path("/dev/shm"), Path("/proc/self")):
        if not path.exists():
            continue
        descriptor = os.open(path, os.O_RDONLY)
        expected = newer and not IS_PORTABLE and file_system_of(path) in ("ext4", "xfs", "btrfs")
        assert files.sync_file_system(descriptor) == expected, path
        os.close(descriptor)
    if newer and not IS_PORTABLE:
        with pytest.raises(OSError, check=lambda error: error.errno == errno.EBADF):
            files.sync_file_system(descriptor)


def test_disk_usage_is_the_same_by_either_way(tmp_path: Path) -> None:
    found = os.statvfs(tmp_path)
    total, usable = files.disk_usage(str(tmp_path))
    assert total == found.f_blocks * found.f_frsize
    assert 0 < usable <= total


@pytest.mark.parametrize("is_linux", [True, False])
def test_a_peer_that_has_left(monkeypatch: pytest.MonkeyPatch, is_linux: bool) -> None:
    if not is_linux:
        monkeypatch.setattr(sockets, "_POLLRDHUP", 0)
    elif not sockets._POLLRDHUP:
        pytest.skip("only Linux distinguishes it from bytes that were not read")
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        assert not sockets.peer_has_left(near)
        far.send(b"x")
        assert not sockets.peer_has_left(near)
        far.close()
        assert sockets.peer_has_left(near) == is_linux
        assert near.recv(9) == b"x"
        assert sockets.peer_has_left(near)


LIMITED = """
from kpybroker.system import processes
processes.end_after(0.05, 60)
if {calls_off}:
    processes.end_after(0, 0)
end = processes.time.process_time() + 0.3
while processes.time.process_time() < end:
    pass
"""


@pytest.mark.parametrize("calls_off", [False, True])
def test_the_system_ends_a_process_that_has_used_its_time_unless_that_is_called_off(calls_off: bool) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED.format(calls_off=calls_off)], check=False)
    has_timers = sys.platform != "win32" and not IS_PORTABLE
    assert done.returncode == (0 if calls_off or not has_timers else -signal.SIGPROF)


WRITTEN = """
import sys
from kpybroker.system import processes
processes.limit_files(1000)
with open(sys.argv[1], "wb", buffering=0) as file:
    file.write(b"x" * 1000)
    try:
        file.write(b"x")
    except OSError:
        sys.exit(7)
"""


def test_no_file_gets_larger_than_the_limit(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WRITTEN, str(tmp_path / "file")], check=False)
    assert done.returncode == (0 if sys.platform == "win32" or IS_PORTABLE else 7)


def test_the_highest_memory_is_known_where_the_system_says_it() -> None:
    found = processes.highest_memory()
    assert found == 0 if sys.platform == "win32" or IS_PORTABLE else found > 1 << 20


@pytest.mark.skipif(sys.platform != "linux" or IS_PORTABLE, reason="other systems say no more than getrusage()")
def test_the_highest_memory_is_not_that_of_the_process_before() -> None:
    program = (
        "import subprocess, sys\nfull = bytearray(b'x') * (200 << 20)\n"
        "done = subprocess.run([sys.executable, '-c', 'from kpybroker.system import processes\\n"
        "print(processes.highest_memory())'], stdout=subprocess.PIPE)\nprint(int(done.stdout))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert 1 << 20 < int(done.stdout) < 100 << 20
