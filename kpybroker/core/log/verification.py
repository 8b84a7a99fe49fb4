"""Verifications of a partition (KIP-890): between the question to a coordinator and the append that it allows.

Before a transaction's first batch enters a partition, the coordinator confirms that the transaction is open and has the
partition, or adds it. The leader takes a guard before it asks, and appends with it. What ends the transaction in
between removes the guard: otherwise a late batch would begin a transaction that never ends.
"""

from __future__ import annotations


class VerificationGuard:
    """A token of one verification (KIP-890): equal only to itself. `NO_VERIFICATION` means none."""

    __slots__ = ()


NO_VERIFICATION = VerificationGuard()


class VerificationEntry:
    """A producer whose transaction is being verified with its coordinator (VerificationStateEntry).

    `adds`: the coordinator adds the partition, as for producers of transactions of version 2.
    """

    __slots__ = ("adds", "epoch", "guard", "lowest_sequence", "timestamp")

    def __init__(self, timestamp: int, sequence: int, epoch: int, adds: bool) -> None:
        self.timestamp = timestamp
        self.guard = VerificationGuard()
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.adds = adds

    def maybe_update(self, sequence: int, epoch: int) -> None:
        """Keep the lowest sequence of the latest epoch: no higher one may be appended before it."""
        if epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
        elif epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
