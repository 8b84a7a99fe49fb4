"""What the server counts, for the four-letter words (ServerStats)."""

from __future__ import annotations


class Statistics:
    """Messages, and how long requests took from their arrival until their response could be sent, in milliseconds."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Count from zero again."""
        self.received = self.sent = self.timed = 0
        self.latency_ms_min, self.latency_ms_max, self.latency_ms_sum = 0.0, 0.0, 0.0

    def note(self, latency_ms: float) -> None:
        """One response was sent."""
        self.latency_ms_min = min(self.latency_ms_min, latency_ms) if self.timed else latency_ms
        self.latency_ms_max = max(self.latency_ms_max, latency_ms)
        self.latency_ms_sum += latency_ms
        self.timed += 1

    @property
    def latency_ms_average(self) -> float:
        """Of all responses so far."""
        return self.latency_ms_sum / self.timed if self.timed else 0.0
