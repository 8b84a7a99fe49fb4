"""A schema registry next to a test's broker: `with SchemaRegistry(broker) as registry: registry.url`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING, Any, Final

from kpybroker.testing.aio import Block
from kpybroker.testing.checking import kinds
from kpybroker.testing.checking.calls import checked
from kpybroker.testing.errors import BrokerGone, StartError, UsageError
from kpybroker.testing.running.options import START_S

if TYPE_CHECKING:
    from typing import Self

    from kpybroker.testing.brokers import Brokers

STOP_S_MAX: Final = 10.0
LOG_BYTES_SHOWN: Final = 4_000
READY: Final = re.compile(r"kpybroker registry ready at (\S+?)/?\s")


def _brokers() -> type:
    from kpybroker.testing.brokers import Brokers

    return Brokers


class SchemaRegistry(Block):
    """`kpybroker registry` for the length of a `with` or `async with` block, or between `start` and `stop`.

    It keeps its schemas in the broker, so another one on the same broker has them too. Its process ends with this one,
    whatever ends it. It needs `pip install 'kpybroker[registry]'`. `port`: 0 takes a free one.
    """

    @checked(
        broker=kinds.instance_of(_brokers, "give a Broker or a Cluster"),
        port=kinds.integer(0, 65_535),
        start_timeout=kinds.number(0.001, 3_600),
    )
    def __init__(self, broker: Brokers, *, port: int = 0, start_timeout: float = START_S) -> None:
        self._broker = broker
        self._port = port
        self._start_timeout = start_timeout
        self._child: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._url: str | None = None

    def __repr__(self) -> str:
        return f"<SchemaRegistry of {self._broker!r}>"

    @property
    def url(self) -> str:
        """What clients set as `schema.registry.url`, or `url`. Raises BrokerGone where it does not run."""
        if self._url is None:
            raise BrokerGone(f"{self!r} is not running", "use it in its `with` block, or call start()")
        return self._url

    @checked()
    def start(self) -> Self:
        """Start, and return once it serves. Raises StartError."""
        import tempfile

        if self._child is not None:
            raise UsageError(f"{self!r} is started already", "start it once, or make another one")
        settings = self._broker.config("confluent-kafka", user="admin" if self._broker.users else None)
        bootstrap = settings.pop("bootstrap.servers")
        command = [sys.executable, "-P", "-m", "kpybroker", "registry", "-b", bootstrap, "--port", str(self._port)]
        command += ["--profile", "none"]  # a developer's own is not the broker's
        command += ["--exit-with", str(os.getpid()), "--options-from-stdin", "--log-level", "WARNING"]
        self._log = tempfile.TemporaryFile("a+b", prefix="kpybroker-registry-")  # noqa: SIM115 -- closed by `kill`
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        try:
            self._url = self._wait_ready(settings)
        except BaseException:
            self.kill()
            raise
        return self

    def _wait_ready(self, settings: dict[str, Any]) -> str:
        assert self._child is not None
        assert self._child.stdin is not None
        with self._child.stdin as given:
            given.write("".join(f"{key}={value}\n" for key, value in settings.items()).encode())
        lines: list[bytes] = []
        reader = threading.Thread(target=self._read, args=(lines,), daemon=True)
        reader.start()
        reader.join(self._start_timeout)
        found = READY.search(b"".join(lines).decode(errors="replace"))
        if found is not None:
            return found[1]
        log = self.log()
        if reader.is_alive():
            raise StartError(
                f"the registry was not ready within {self._start_timeout:g} s. Its log:\n{log or 'nothing'}",
                "give it more time with start_timeout=, or see what slows this machine down",
            )
        reported = re.search(r"^kpybroker: (.*)\nfix: (.*)$", log, re.MULTILINE)
        if reported is not None:
            raise StartError(reported[1], reported[2])
        raise StartError(f"the registry ended. Its log:\n{log or 'nothing'}", "the log says why")

    def _read(self, lines: list[bytes]) -> None:
        assert self._child is not None
        assert self._child.stdout is not None
        with self._child.stdout as output:
            lines.append(output.readline())

    @checked()
    def log(self) -> str:
        """The end of what it logged; only warnings and errors are."""
        if self._log is None:
            return ""
        self._log.seek(0)
        return self._log.read()[-LOG_BYTES_SHOWN:].decode(errors="replace")

    @checked()
    def stop(self) -> None:
        """Stop in order. Stopping again does nothing."""
        child = self._child
        if child is not None:
            child.terminate()
            try:
                child.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                pass  # `kill` follows
        self.kill()

    @checked()
    def kill(self) -> None:
        """End at once, as SIGKILL does."""
        child, log = self._child, self._log
        self._child = self._log = self._url = None
        if child is not None:
            child.kill()
            child.wait()
        if log is not None:
            log.close()
