"""What becomes of metrics that a client pushed: the seam between their protocol and their use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class InvalidMetrics(ValueError):
    """The bytes of a push are not an OTLP MetricsData."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """One PushTelemetry that was accepted.

    `instance_id`: 16 bytes, as topic ids. `address`: the client's host. `metrics`: an OTLP MetricsData, decompressed.
    """

    instance_id: bytes
    client_id: str
    software_name: str
    software_version: str
    address: str
    terminating: bool
    metrics: bytes
    interval_ms: int = 300_000
    """When the client pushes again."""


class Receiver(Protocol):
    """Takes what clients push."""

    async def receive(self, pushed: Pushed) -> None:
        """Take one push. Raises InvalidMetrics if it is not OTLP: the client gets INVALID_RECORD."""
