"""Which batches of a connection are stored on their header's word, and which have their records walked first.

A wrong header is a fault of a client's implementation, which makes it in every batch or in every batch of some shape.
So a connection's first batches are walked, then one in `EVERY`, and always those whose header can't be right. A client
that is caught once is walked on all its connections from then on. A batch of one record is checked whole: that costs
no more than counting it.

Pure. The walk is `wire.records.claims`; the log line, and what happens to the batch, are the Produce handler's.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable
from weakref import WeakSet

from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import CODEC_MASK, LOG_OVERHEAD, RECORD_BATCH_OVERHEAD
from kpybroker.wire.records.default_record import RECORD_BYTES_MIN

FIRST = 4
"""Batches of a connection that are walked before any is believed."""
EVERY = 256
"""After that one batch in so many is walked; less often where batches have more than a quarter as many records, so that
walking costs no batch more than a quarter of a record, some 0.1 µs."""
EVERY_MAX = 16 * EVERY
PAST_MS = 10 * 365 * 24 * 3600 * 1000
"""Records that claim to be older are walked: their client counts in seconds, or from another year 0."""
FUTURE_MS = 24 * 3600 * 1000
"""Records that claim to be so far ahead of the clock are walked."""
CLIENTS_MAX = 1000
"""Clients that are remembered as caught; the oldest is forgotten, and caught again by its next first batches."""

# Batch length, magic, attributes, last offset delta, base and max timestamp of magic 2.
_unpack = struct.Struct(">8xi4xb4xhiqq").unpack_from
_BATCH_BYTES_MIN = RECORD_BATCH_OVERHEAD + RECORD_BYTES_MIN


class HeaderTrust:
    """What one connection's batches are believed."""

    __slots__ = ("__weakref__", "_earliest", "_interval", "_latest", "_walked", "client", "is_caught", "left")

    def __init__(self) -> None:
        self.left = 0
        """How many batches are believed before the next one is walked."""
        self.is_caught = False
        self.client: Hashable = None
        """Who sent the batch that was walked last."""
        self._walked = 0
        self._interval = EVERY
        self._earliest = self._latest = 0  # plausible times are between them, as of the last walk

    def believes(self, records: Buffer, refused_attributes: int = 0) -> bool:
        """Whether `records` are one batch of magic 2, without any of these attributes, to be stored on its header's
        word. Counts it.
        """
        size = len(records)
        if size < _BATCH_BYTES_MIN:
            return False
        length, magic, attributes, delta, base_timestamp, max_timestamp = _unpack(records)
        if length != size - LOG_OVERHEAD or magic != 2 or attributes & refused_attributes:
            return False
        if delta or attributes & CODEC_MASK:
            self.left -= 1
            if self.left < 0:
                self._interval = min(max(EVERY, 4 * delta), EVERY_MAX)
                return False
            is_plausible: bool = self._earliest < base_timestamp <= max_timestamp < self._latest
            return is_plausible
        # One record: it fills the batch, and its timestamp is the base timestamp and the largest one.
        byte = records[61]
        if byte < 0x80:
            end, delta_at = 62 + (byte >> 1), 63
        elif (second := records[62]) < 0x80:
            end, delta_at = 63 + ((byte & 0x7F | second << 7) >> 1), 64
        else:
            end, delta_at = 64 + ((byte & 0x7F | (second & 0x7F) << 7 | records[63] << 14) >> 1), 65
        return base_timestamp == max_timestamp and end == size and records[delta_at] == 0

    def walked(self, now_ms: int) -> None:
        """A batch was walked: count until the next one, unless that was due to what its header said."""
        self._earliest, self._latest = now_ms - PAST_MS, now_ms + FUTURE_MS
        if self.is_caught:
            self.left = 0
        elif self.left < 0:
            self._walked += 1
            self.left = 0 if self._walked < FIRST else self._interval - 1


class CaughtClients:
    """The clients that sent a batch with a wrong header. A client is any value that its connections have in common."""

    __slots__ = ("_clients", "_connections")

    def __init__(self) -> None:
        self._clients: dict[Hashable, None] = {}
        self._connections: WeakSet[HeaderTrust] = WeakSet()

    def walked(self, trust: HeaderTrust, client: Hashable, now_ms: int) -> None:
        """A batch of `client` was walked on a connection, and its header was right."""
        self._note(trust, client)
        trust.walked(now_ms)

    def caught(self, trust: HeaderTrust, client: Hashable, now_ms: int) -> bool:
        """A batch of `client` was walked, and its header was wrong; whether that is new."""
        is_new = client not in self._clients
        if is_new:
            if len(self._clients) >= CLIENTS_MAX:
                del self._clients[next(iter(self._clients))]
            self._clients[client] = None
            for other in self._connections:
                if other.client == client:
                    other.is_caught, other.left = True, 0
        self._note(trust, client)
        trust.is_caught = True
        trust.walked(now_ms)
        return is_new

    def _note(self, trust: HeaderTrust, client: Hashable) -> None:
        trust.client = client
        trust.is_caught = trust.is_caught or client in self._clients
        self._connections.add(trust)
