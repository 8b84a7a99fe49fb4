"""One call into the transaction state machine: when it happens, and the outcome it fills."""

from __future__ import annotations

from kpybroker.core.machine import Outcome, Step
from kpybroker.core.transaction.records import TransactionRecord
from kpybroker.core.transaction.values import WriteMarkers


class TransactionStep(Step[TransactionRecord]):
    """A step of the transaction state machine; it adds orders to write markers."""

    __slots__ = ()

    def order(self, markers: WriteMarkers) -> None:
        """Ask the shell to write the markers and to report the result by `on_markers`."""
        self.outcome.effects.append(markers)


TransactionOutcome = Outcome[TransactionRecord, TransactionStep]
