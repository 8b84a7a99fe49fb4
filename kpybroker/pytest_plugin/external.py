"""A cluster that was there before, for `--kafka-bootstrap`: a `Broker`, as far as stock clients can do what it does."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from kpybroker.pytest_plugin.external_channel import ExternalChannel, needs_ours
from kpybroker.testing import Broker

if TYPE_CHECKING:
    from typing import Self

    from kpybroker.testing import BrokerClock, Faults


class ExternalKafka(Broker):
    """Clients, topics, records and groups as with `Broker`; what only our broker can do skips the test."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__()
        self._servers = bootstrap_servers
        self._external: ExternalChannel | None = None

    def __repr__(self) -> str:
        return f"<ExternalKafka {self._servers}>"

    def start(self) -> Self:
        """It was started before."""
        return self

    def stop(self) -> None:
        """It goes on."""

    kill = stop

    @property
    def is_running(self) -> bool:
        """Whether it can be used: the run has seen it."""
        return True

    @property
    def channel(self) -> Any:
        """What takes the place of the control channel."""
        if self._external is None:
            self._external = ExternalChannel({"bootstrap.servers": self._servers})
        return self._external

    @property
    def bootstrap_servers(self) -> str:
        """As it was named."""
        return self._servers

    @property
    def host(self) -> str:
        """Of the first address."""
        return self._servers.split(",")[0].rpartition(":")[0]

    @property
    def port(self) -> int:
        """Of the first address."""
        return int(self._servers.split(",")[0].rpartition(":")[2])

    @cached_property
    def faults(self) -> Faults:
        """Skips the test."""
        needs_ours("faults")

    @cached_property
    def clock(self) -> BrokerClock:
        """Skips the test."""
        needs_ours("clock")

    @property
    def control(self) -> str:
        """Skips the test."""
        needs_ours("control")

    @property
    def data_dir(self) -> str:
        """Skips the test."""
        needs_ours("data_dir")

    def log(self, lines: int = 200) -> list[str]:
        """Skips the test."""
        needs_ours("log")
