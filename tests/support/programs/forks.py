"""Brokers, commands and clients without a start of Python for each: one process has imported them, and forks.

Imports are most of what a start costs, and tests start hundreds. A fork has its own folder, output, environment and
limits as a process that was started has them; it dies with the process that it came of, and that with pytest. Where
what Python or the broker reads before that differs, or another build is tested, `can_fork` refuses.

    python -m tests.support.programs.forks FD MODULE...    # the process that forks; FD is its end of a socket
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import pkgutil
import resource
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Self

PR_SET_PDEATHSIG = 1
MESSAGE_BYTES_MAX = 1 << 20
BROKER = (
    *("kpybroker.cli.main", "kpybroker.cli.server", "kpybroker.cli.dev", "kpybroker.broker.*", "kpybroker.core.*"),
    *("kpybroker.control.*", "kpybroker.coordination.*", "kpybroker.http.*", "javaproperties"),
)
COMMANDS = (
    *("kpybroker.cli.main", "kpybroker.client.*", "kpybroker.registry.*", "kpybroker.console.*"),
    "confluent_kafka.admin",
)
CLIENTS = (
    *("confluent_kafka.admin", "kafka.admin", "kafka.coordinator.assignors.cooperative_sticky"),
    *("aiokafka.helpers", "asyncio"),
)
"""What is imported before the forks; with `.*` all that is in a package. The last are for programs of the tests."""
QUICK_JVMS = "COMPAT_QUICK_JVMS"
"""Set where Kafka and ZooKeeper are needed for seconds, as in tests: they start as tools do. Brokers of ours fork."""
LIMITS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))
READ_BY_IMPORTS = ("KPYBROKER_PORTABLE", "LANG", "LC_", "LD_", "MALLOC", "PYTHON", "SSL", "TZ")
"""How variables begin that have had their effect before a fork."""
OTHER_BUILD = "KPYBROKER"


class Forked:
    """A broker that was forked, with what is used of `subprocess.Popen`."""

    def __init__(self, forks: Forks, pid: int) -> None:
        self._forks = forks
        self.pid = pid
        self.stdin: IO[Any] | None = None
        self.stdout: IO[Any] | None = None
        self.returncode: int | None = None
        self._ended = os.pidfd_open(pid)
        self._lock = threading.Lock()

    def __del__(self) -> None:
        os.close(self._ended)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self.stdin, self.stdout):
            if pipe is not None:
                pipe.close()
        self.wait()

    def poll(self) -> int | None:
        """The exit code, or minus a signal's number; None while it runs."""
        with self._lock:  # it has one exit code, which is asked for once
            if self.returncode is None and self._has_ended(0):
                self.returncode = self._forks.code_of(self.pid)
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises `subprocess.TimeoutExpired`."""
        if self.returncode is None and not self._has_ended(timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._ended, number)

    def _has_ended(self, timeout: float | None) -> bool:
        waiting = select.poll()
        waiting.register(self._ended, select.POLLIN)
        return bool(waiting.poll(None if timeout is None else timeout * 1000))


class Forks:
    """The process that forks, seen from the tests. Any thread may call it."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.read_by_imports = _read_by_imports(os.environ)
        self._lock = threading.Lock()
        command = [sys.executable, "-m", __name__, str(theirs.fileno()), *modules]
        root = Path(__file__).resolve().parents[3]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=root)
        theirs.close()
        atexit.register(self._end)

    def start(
        self, arguments: Sequence[str], directory: Path, environment: Mapping[str, str], output: int, *more: int
    ) -> Forked:
        """`kpybroker` with these arguments, or a program and its arguments, in a session of its own.

        `more`: where its errors go, if not to `output`, and its standard input.
        """
        limits = [(number, resource.getrlimit(number)) for number in LIMITS]
        wish = {
            "arguments": arguments,
            "directory": str(directory),
            "environment": dict(environment),
            "limits": limits,
        }
        with self._lock:
            socket.send_fds(self._ours, [json.dumps(wish).encode()], [output, *more])
            return Forked(self, self._response())

    def piped(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        errors: int | None,
        *,
        is_text: bool,
        is_asked: bool = False,
    ) -> Forked:
        """The same in this process's directory, with its output in a pipe.

        `errors` None: they are output too; DEVNULL may be given. `is_asked`: there is a pipe for its input.
        """
        mode = "" if is_text else "b"
        nowhere = os.open(os.devnull, os.O_RDWR)
        reading, output = os.pipe()
        given, asking = os.pipe() if is_asked else (nowhere, None)
        said = {None: output, subprocess.DEVNULL: nowhere}.get(errors, errors)
        assert said is not None
        try:
            forked = self.start(arguments, Path.cwd(), environment, output, said, given)
        finally:
            for descriptor in {nowhere, output, given}:
                os.close(descriptor)
        forked.stdout = os.fdopen(reading, f"r{mode}")
        if asking is not None:
            forked.stdin = os.fdopen(asking, f"w{mode}")
        return forked

    def run(
        self, arguments: Sequence[str], stdin: str | bytes | None, environment: Mapping[str, str], deadline_s: float
    ) -> tuple[int | None, str, str]:
        """The same to its end: its code, its output and its errors. The code of one that had to be killed is None."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin.encode() if isinstance(stdin, str) else stdin or b"")
            given.seek(0)
            descriptors = [file.fileno() for file in (out, err, given)]
            process = self.start(arguments, Path.cwd(), environment, *descriptors)
            code: int | None = None
            try:
                code = process.wait(deadline_s)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        return code, texts[0], texts[1]

    def code_of(self, pid: int) -> int:
        """Of one that has ended."""
        with self._lock:
            self._ours.send(json.dumps({"ended": pid}).encode())
            return self._response()

    def _response(self) -> int:
        response = self._ours.recv(MESSAGE_BYTES_MAX)
        assert response, "the process that forks has ended"
        return int(response)

    def _end(self) -> None:
        self._ours.close()
        self._process.wait()


@cache
def _made(modules: Sequence[str]) -> Forks:
    return Forks(modules)


_making = threading.Lock()


def forks(modules: Sequence[str] = BROKER) -> Forks:
    """Those of this process."""
    with _making:
        return _made(modules)


def can_fork(environment: Mapping[str, str], modules: Sequence[str] = BROKER) -> bool:
    """Whether a process of this environment may be a fork."""
    if sys.platform != "linux" or OTHER_BUILD in environment:
        return False
    return forks(modules).read_by_imports == _read_by_imports(environment)


def piped(arguments: Sequence[str], modules: Sequence[str], errors: int = 2) -> Forked | subprocess.Popen[str]:
    """`kpybroker` with these arguments and its output in a pipe: a fork, in tests and where that may be."""
    if QUICK_JVMS in os.environ and can_fork(os.environ, modules):
        return forks(modules).piped(arguments, os.environ, errors, is_text=True)
    command = [sys.executable, "-m", "kpybroker", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)


def asked(command: Sequence[str], environment: Mapping[str, str], errors: int | None) -> Forked | subprocess.Popen[str]:
    """A client of the tests with pipes for its input and its output; `errors` None: they are output too.

    A program in Python is a fork, in tests and where that may be.
    """
    if command[0] == sys.executable and QUICK_JVMS in environment and can_fork(environment, CLIENTS):
        return forks(CLIENTS).piped(command[1:], environment, errors, is_text=True, is_asked=True)
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if errors is None else errors,
        text=True,
        env=environment,
    )


def fork_children_of_testing() -> None:
    """From now on brokers of `kpybroker.testing` that are processes are forks, where that may be."""
    from kpybroker.testing.running import process

    if process.start_child.__module__ == __name__:
        return
    start_child = process.start_child

    def forked_or_started(command: Sequence[str], log: IO[bytes]) -> Any:
        if not can_fork(os.environ):
            return start_child(command, log)
        arguments = command[command.index("dev") :]
        return forks().piped(arguments, os.environ, log.fileno(), is_text=False)

    process.start_child = forked_or_started


def _read_by_imports(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_BY_IMPORTS)}


# --- the process that forks


def serve(tests: socket.socket) -> list[str] | None:
    """Fork until the tests end. Returns in each fork what it is to run, and None at the end."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(tests, MESSAGE_BYTES_MAX, 3)
        if not message:
            return None
        wish: dict[str, Any] = json.loads(message)
        if "ended" in wish:
            _, status = os.waitpid(wish["ended"], 0)
            tests.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        parent = os.getpid()
        if (pid := os.fork()) == 0:
            tests.close()
            _become(wish, descriptors, parent)
            return [str(one) for one in wish["arguments"]]
        for descriptor in descriptors:
            os.close(descriptor)
        tests.send(str(pid).encode())


def _become(wish: dict[str, Any], descriptors: Sequence[int], parent: int) -> None:
    """What a start would have given the process."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    for number, limits in wish["limits"]:
        resource.setrlimit(number, tuple(limits))
    output = descriptors[0]
    errors = descriptors[1] if len(descriptors) > 1 else output
    given = descriptors[2] if len(descriptors) > 2 else os.open(os.devnull, os.O_RDONLY)
    for source, target in ((given, 0), (output, 1), (errors, 2)):
        os.dup2(source, target)
    for source in {given, output, errors}:
        os.close(source)
    os.setsid()
    os.chdir(wish["directory"])
    os.environ.clear()
    os.environ.update(wish["environment"])
    gc.unfreeze()


def main() -> None:
    """Import what is named, and serve."""
    for name in sys.argv[2:]:
        package = import_module(name.removesuffix(".*"))
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.") if name.endswith(".*") else ():
            if not found.name.endswith("__main__"):
                import_module(found.name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests: they end this process
    gc.collect()
    gc.freeze()
    arguments = serve(socket.socket(fileno=int(sys.argv[1])))
    if arguments is not None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if arguments[0].endswith(".py"):
            sys.argv, sys.path[0] = arguments, str(Path(arguments[0]).parent)
            runpy.run_path(arguments[0], run_name="__main__")
        else:
            sys.argv = ["kpybroker", *arguments]
            import_module("kpybroker.cli.main").main()


if __name__ == "__main__":
    main()
