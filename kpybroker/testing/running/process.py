"""The broker's process: a child that ends with this one, whatever ends it.

- It watches this process (`--exit-with`), so it ends also when this one is killed.
- It has one directory, whose name is chosen here. The child makes it and removes it; if the child is killed, it is
  removed here; if both are, the next broker that starts on this machine removes it.
- It is in a process group of its own: Ctrl-C reaches this process only, which then stops it.
"""

from __future__ import annotations

import atexit
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from kpybroker.testing.errors import BrokerGone, StartError, TestingError
from kpybroker.testing.running.words import as_python

STOP_S_MAX: Final = 10.0
LOG_BYTES_SHOWN: Final = 4_000
READY: Final = re.compile(r"kpybroker ready at \S+.* control=http://([\d.]+):(\d+)")

_running: set[Process] = set()


class Process:
    """A child that runs `kpybroker dev`. `directory` is removed after its end, unless it is None.

    It ends with this process, or with the process `exit_with`.
    """

    def __init__(self, arguments: Sequence[str], directory: str | None, exit_with: int | None = None) -> None:
        self._arguments = arguments
        self._exit_with = exit_with
        self._directory = directory
        self._owner = os.getpid()
        self._child: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._log_at_end = ""
        self._is_stopping = False

    @property
    def pid(self) -> int:
        """The child's process id."""
        assert self._child is not None
        return self._child.pid

    def start(self, timeout: float) -> tuple[str, int]:
        """Return the address of the control channel once the brokers serve. Raises StartError."""
        import tempfile

        self._log = tempfile.TemporaryFile("a+b", prefix="kpybroker-log-")  # noqa: SIM115 -- closed by `kill`
        command = [sys.executable, "-P", "-m", "kpybroker", "dev", "--control", "0", "--exit-with"]
        command.append(str(self._exit_with or self._owner))
        self._child = start_child([*command, *self._arguments], self._log)
        if self._exit_with is None:
            _running.add(self)
        try:
            return self._wait_ready(timeout)
        except BaseException:
            self.kill()
            raise

    def _wait_ready(self, timeout: float) -> tuple[str, int]:
        assert self._child is not None
        lines: list[bytes] = []
        reader = threading.Thread(target=self._read, args=(lines,), daemon=True)
        reader.start()
        reader.join(timeout)
        text = b"".join(lines).decode(errors="replace")
        if (found := READY.search(text)) is not None:
            return found[1], int(found[2])
        if reader.is_alive():
            raise StartError(
                f"the broker was not ready within {timeout:g} s. Its log:\n{self.log() or text or 'nothing'}",
                "give it more time with start_timeout=, or see what slows this machine down",
            )
        self._child.wait()
        raise self._failed_start()

    def _read(self, lines: list[bytes]) -> None:
        """The child's output up to its ready line."""
        assert self._child is not None
        assert self._child.stdout is not None
        with self._child.stdout as output:
            for line in output:
                lines.append(line)
                if line.startswith(b"kpybroker ready at "):
                    return

    def _failed_start(self) -> StartError:
        assert self._child is not None
        log = self.log()
        reported = re.search(r"^kpybroker: (.*)\nfix: (.*)$", log, re.MULTILINE)
        if reported is not None:
            return StartError(as_python(reported[1]), as_python(reported[2]))
        cause = f"the broker's process ended with exit code {self._child.returncode}. Its log:\n{log or 'nothing'}"
        return StartError(cause, "see the log above")

    def log(self) -> str:
        """The end of what it wrote to standard error."""
        if self._log is None or self._log.closed:
            return self._log_at_end
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(size - LOG_BYTES_SHOWN, 0))  # the child appends, wherever this is
        return self._log.read().decode(errors="replace").strip()

    def why_gone(self) -> TestingError | None:
        """Why it does not respond, if it has ended."""
        if self._child is None or self._is_stopping:
            return BrokerGone("the broker has been stopped", "use it before the end of its `with` block")
        try:
            code = self._child.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            return None
        return BrokerGone(f"the broker's process ended with exit code {code}. Its log:\n{self.log()}", "start it again")

    # --- the end

    def end(self) -> None:
        """Wait for the end that was requested by the channel; end it by force after `STOP_S_MAX`."""
        self._is_stopping = True
        if self._child is None:
            return
        from kpybroker.system.processes import is_ended

        if not is_ended(self._child.pid, STOP_S_MAX):  # `wait` with a limit looks every 50 ms only
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(STOP_S_MAX)
        self.kill()

    def kill(self) -> None:
        """End it at once, and remove its directory. Does nothing in a fork of the process that started it."""
        self._is_stopping = True
        if self._child is None or os.getpid() != self._owner:
            return
        self._child.kill()
        self._child.wait()
        _running.discard(self)
        if self._child.stdout is not None:
            self._child.stdout.close()
        if self._log is not None and not self._log.closed:
            self._log_at_end = self.log()
            self._log.close()
        if self._directory is not None:
            remove_directory(self._directory)


def start_child(command: Sequence[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """The child, in a session of its own, with its output in a pipe."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        env=_environment(),
        start_new_session=True,
    )


def remove_directory(directory: str) -> None:
    """Remove it with all files in it, if it exists."""
    import shutil

    shutil.rmtree(directory, ignore_errors=True)


@atexit.register
def _kill_all() -> None:
    """Of brokers that were not stopped."""
    for process in list(_running):
        process.kill()


def _environment() -> dict[str, str]:
    """This process's, with the place that kpybroker was imported from: it may be a checkout that is not installed."""
    environment = dict(os.environ)
    root = str(Path(__file__).resolve().parents[3])
    if os.path.basename(root) not in ("site-packages", "dist-packages"):
        others = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = root if not others else f"{root}{os.pathsep}{others}"
    return environment


def new_directory_name() -> str:
    """A name for the directory of one start, below the system's temporary directory; nothing is created."""
    import secrets
    import tempfile

    return os.path.join(tempfile.gettempdir(), f"kpybroker-{os.getpid()}-{time.time_ns():x}-{secrets.token_hex(4)}")
