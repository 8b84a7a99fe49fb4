"""What a child process and a thread have in common, for those who use them."""

from __future__ import annotations

from typing import Protocol

from kpybroker.testing.errors import TestingError


class Runner(Protocol):
    """Where the brokers run: a child process, or a thread."""

    def start(self, timeout: float) -> tuple[str, int]:
        """Return the address of the control channel once the brokers serve. Raises StartError."""

    def end(self) -> None:
        """Return when the end that was requested by the channel has come, or force it."""

    def kill(self) -> None:
        """End it at once."""

    def why_gone(self) -> TestingError | None:
        """Why it does not respond, if it has ended."""

    def log(self) -> str:
        """The end of its log, also after its end."""
