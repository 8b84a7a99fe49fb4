"""What one fetch asks for, and the visits of its partitions: values that `fetch_service` fills.

Kafka's `FetchParams`, and its ``LogReadResult`` as far as it goes into the response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from kpybroker.wire.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from kpybroker.broker.replication.traffic import TopicTraffic
    from kpybroker.broker.requests.context import RequestContext
    from kpybroker.core.replication.fetch_session import CachedPartition
    from kpybroker.storage.disk.slice import FileSlice
    from kpybroker.storage.log.log import Log

PartitionData = FetchResponse.PartitionData
NO_LIMIT: Final = 2**63 - 1
UNSEEN: Final = -1
"""In place of an offset: a fetch that does not count."""
FOLLOWER_FETCHING_SINCE: Final = 11


class FetchParams(NamedTuple):
    """What one fetch request asks for as a whole. Bytes and milliseconds."""

    version: int
    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    readable: Callable[[str], bool]
    """Whether the client may read a topic, by name."""
    client: RequestContext
    rack_id: str
    is_follower: bool
    """Whether another broker asks, to replicate."""
    only_leader: bool
    """Consumers that support KIP-392 may read from followers too."""
    has_hard_limits: bool
    """Versions 0-2 are without the whole-batch rule (KIP-74): limits are hard and a batch may be truncated."""


class Visit:
    """One partition's part of a response. `slice` must be released after it was sent (`release`)."""

    __slots__ = (
        *("cached", "data", "limit", "min_one", "size", "slice", "traffic"),
        *("is_cut_short", "is_first", "is_on_older_segment", "is_out_of_sync", "is_special", "is_unread"),
        "end",
    )

    def __init__(self, cached: CachedPartition, limit: int, *, min_one: bool, is_first: bool) -> None:
        self.cached = cached
        self.data = PartitionData(partition_index=cached.key[2])
        self.limit = limit
        """Bytes that may be read."""
        self.min_one = min_one
        """Read one whole batch even if it is above the limit (KIP-74)."""
        self.is_first = is_first
        """The first visit to this partition in this request."""
        self.size = 0
        self.slice: FileSlice | None = None
        self.is_special = False
        self.is_cut_short = False
        """There is more than was read: the response was full, or the follower is throttled."""
        self.is_on_older_segment = False
        """A later segment has more: the fetch need not wait, though one read does not reach it (DelayedFetch, F)."""
        self.is_out_of_sync = False
        """Of a follower outside the ISR: every fetch checks whether it may join, as in Kafka."""
        self.is_unread = True
        """Refused before the partition was looked at."""
        self.traffic: TopicTraffic | None = None
        """The counts of its topic, once the client may read it."""
        self.end = NO_LIMIT
        """Where a test holds the follower, or UNSEEN."""

    def describe(self, log: Log) -> None:
        """Put the log's offsets into the response, and no records."""
        data = self.data
        data.high_watermark = log.high_watermark
        data.last_stable_offset = log.last_stable_offset
        data.log_start_offset = log.log_start_offset
        data.aborted_transactions = None
        data.records = b""


def release(visits: Iterable[Visit]) -> None:
    """Give the file slices back, whether or not they were sent."""
    for visit in visits:
        if visit.slice is not None:
            visit.slice.release()
            visit.slice = None
