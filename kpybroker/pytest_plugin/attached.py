"""A broker that another process started, reached by its control channel."""

from __future__ import annotations

from typing import Any

from kpybroker.testing import Broker, TestingError


class _Elsewhere:
    """A `Runner` that neither starts nor ends anything."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)

    def start(self, timeout: float) -> tuple[str, int]:
        """The address of the channel."""
        return self._address

    def end(self) -> None:
        """It goes on."""

    kill = end

    def why_gone(self) -> TestingError | None:
        """Only its own process knows."""
        return None

    def log(self) -> str:
        """Its process keeps it."""
        return ""


class AttachedBroker(Broker):
    """As a `Broker`, but `stop` leaves it running."""

    def __init__(self, host: str, port: int, directory: str | None = None, **security: Any) -> None:
        """The address of its channel; where its files are, and the security that it was started with."""
        super().__init__(**security)
        self._elsewhere = _Elsewhere(host, port)
        if directory is not None:
            self._launch.directory = directory

    def _new_runner(self) -> _Elsewhere:
        return self._elsewhere

    def stop(self) -> None:
        """Close the connections to it."""
        self.kill()
