"""A broker that another process started, reached by its control channel."""

from __future__ import annotations

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

    def __init__(self, host: str, port: int) -> None:
        super().__init__()
        self._elsewhere = _Elsewhere(host, port)

    def _new_runner(self) -> _Elsewhere:
        return self._elsewhere

    def stop(self) -> None:
        """Close the connections to it."""
        self.kill()
