"""The handle of a fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kpybroker.testing.errors import TestingError, UsageError
from kpybroker.testing.waiting import WAIT_S

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from kpybroker.testing.running.channel import Channel


class Fault:
    """As a context manager it is removed at the end of the block."""

    def __init__(self, channel: Channel, fault_id: int, failures: list[BaseException] | None = None) -> None:
        self._channel = channel
        self._failures = failures if failures is not None else []
        self._at_end: Mapping[str, Any] | None = None
        self.id = fault_id

    @property
    def hits(self) -> int:
        """How many requests it has acted on; of a fault of the disk, how many calls."""
        hits: int = self.status()["hits"]
        return hits

    def status(self) -> Mapping[str, Any]:
        """Everything that is known of it: its rule, its hits, its state; after `remove`, as it was then."""
        self._raise_failure()
        if self._at_end is not None:
            return self._at_end
        status: Mapping[str, Any] = self._channel.call("fault", id=self.id)
        return status

    def wait(self, hits: int = 1, timeout: float = WAIT_S) -> None:
        """Return once it has acted on so many requests. Raises WaitTimeout after `timeout` seconds."""
        try:
            self._channel.call("wait_fault", wait_s=timeout, id=self.id, hits=hits, timeout_ms=round(timeout * 1000))
        finally:
            self._raise_failure()

    def release(self, *, again: bool = False) -> None:
        """Let what it holds go on. It holds no more, or, with `again`, what arrives from now on."""
        self._channel.call("release_fault", id=self.id, again=again)

    def remove(self) -> None:
        """Remove it; what it holds goes on. Removing it again, or after `reset`, does nothing."""
        if self._at_end is None:
            try:
                self._at_end = self._channel.call("remove_fault", id=self.id)
            except UsageError:
                self._at_end = {"id": self.id, "hits": 0}  # it went with all others

    def _raise_failure(self) -> None:
        if self._failures:
            error = self._failures[0]
            cause = f"the predicate of fault {self.id} failed: {type(error).__name__}: {error}"
            raise TestingError(cause, "the request counted as one that it does not select") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<Fault {self.id}>"
