"""One page of a topic's records, and what was not read: a page that shows less than it may says what is left.

A page goes from a cut towards newer or older records. Reading ends with the page's limit, with the last record, or at a
bound of `messages`: then the records that are left can be asked for from where it ended.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import Failures, usage
from kpybroker.client.connect.settings import Settings
from kpybroker.client.records.record import Record
from kpybroker.client.show.cells import moment, size
from kpybroker.console.queries import messages
from kpybroker.console.queries.filters import Accepts
from kpybroker.console.queries.messages import Cursor, Selection
from kpybroker.console.queries.records.scan import Scan
from kpybroker.console.queries.records.timeline import NEWER, OLDER, Timeline

RANGES_MAX: Final = 1000
"""Records of the first ranges, over all partitions."""
HELD_BYTES_MAX: Final = 256 << 20
"""Of messages that are compared before the first is shown."""


class Read(NamedTuple):
    """Records in the order in which they are shown, what reading them took, and the cuts on both sides of them.

    `left` is how many offsets were not read, of which some may have no record. `time_ms`: everything up to there was.
    `older` and `newer` are None where nothing is.
    """

    records: list[Record]
    scanned: int
    scanned_bytes: int
    seconds: float
    left: int
    time_ms: int | None
    is_older: bool
    older: Cursor | None
    newer: Cursor | None

    @property
    def onward(self) -> Cursor | None:
        """Where the same search goes on."""
        return self.older if self.is_older else self.newer


class Place(NamedTuple):
    """A timeline that has not been read, and the cut where it begins."""

    timeline: Timeline
    begin: Cursor
    first: Cursor
    end: Cursor

    @property
    def is_older(self) -> bool:
        """Whether it goes towards older records."""
        return self.timeline.way == OLDER


def is_descending(wanted: Selection) -> bool:
    """Whether the newest is shown first."""
    return wanted.start == "latest"


def placed(cluster: Cluster, wanted: Selection, has_filter: bool, failures: Failures | None = None) -> Place:
    """Where to read, now; without `failures` every partition must be readable. Raises CommandError."""
    edges = messages.edges_of(cluster, wanted, failures)
    cut = messages.begin(cluster, wanted, edges)
    is_older = wanted.way == "older" if wanted.cursor is not None else is_descending(wanted)
    lanes = {place[1]: one for place, one in edges.items()}
    timeline = Timeline(lanes, cut, OLDER if is_older else NEWER, is_exact=not has_filter)
    return Place(
        timeline,
        cut,
        {number: one.start for number, one in lanes.items()},
        {number: one.end for number, one in lanes.items()},
    )


def scan_of(settings: Settings, wanted: Selection, place: Place, accepts: Accepts) -> Scan:
    """What reads it."""
    each = max(1, min(wanted.limit, RANGES_MAX // max(1, len(place.begin))))
    return Scan(settings, wanted.topic, place.timeline, accepts, each)


def read(cluster: Cluster, wanted: Selection, accepts: Accepts, has_filter: bool, failures: Failures) -> Read:
    """The records of one page. Raises CommandError."""
    place = placed(cluster, wanted, has_filter, failures)
    deadline = time.monotonic() + messages.SCAN_S_MAX
    found: list[Record] = []
    with scan_of(cluster.settings, wanted, place, accepts) as scan:

        def stop() -> bool:
            if time.monotonic() > deadline:
                return True
            if not has_filter and not found:  # what is compared must be read, to show one
                if scan.scanned_bytes > HELD_BYTES_MAX:
                    cause = f"the next messages of {len(place.begin)} partitions are more than {size(HELD_BYTES_MAX)}"
                    raise usage(cause, "name fewer partitions")
                return False
            return scan.scanned >= messages.SCANNED_MAX or scan.scanned_bytes >= messages.SCANNED_BYTES_MAX

        for record in scan.records(stop):
            found.append(record)
            if len(found) == wanted.limit:
                break
        return result(place, scan, found, wanted)


PREVIOUS: Final = "previous"
NEXT: Final = "next"


def neighbour(cluster: Cluster, topic: str, place: tuple[int, int], go: str, failures: Failures) -> Record | None:
    """The record of the same partition before or after one at a partition and offset; None for none.

    Offsets may have no record. Raises CommandError.
    """
    partition, offset = place
    cut, way = (offset, "older") if go == PREVIOUS else (offset + 1, "newer")
    wanted = Selection(topic, partitions=str(partition), limit=1, cursor={partition: cut}, way=way)
    found = read(cluster, wanted, lambda _: True, False, failures).records
    return found[0] if found else None


def result(place: Place, scan: Scan, found: list[Record], wanted: Selection) -> Read:
    """A page of what was found so far."""
    timeline, cut = place.timeline, place.timeline.cut()
    older, newer = (cut, place.begin) if place.is_older else (place.begin, cut)
    return Read(
        found if place.is_older == is_descending(wanted) else found[::-1],
        scan.scanned,
        scan.scanned_bytes,
        scan.seconds,
        sum(abs(cut[number] - edge) for number, edge in (place.first if place.is_older else place.end).items()),
        timeline.time_ms,
        place.is_older,
        older if any(older[number] > start for number, start in place.first.items()) else None,
        newer if any(newer[number] < end for number, end in place.end.items()) else None,
    )


def summary(found: Read, count: int, has_filter: bool) -> str:
    """What was shown and read, and what was not."""
    way = "older" if found.is_older else "newer"
    rate = f", {grouped(int(found.scanned / found.seconds))} a second" if found.seconds >= 1 else ""
    text = f"{grouped(count)} shown, {grouped(found.scanned)} read ({size(found.scanned_bytes)}{rate})."
    if not found.left:
        return f"{text} Everything {way} was searched." if has_filter else f"{text} There is nothing {way}."
    at = "" if found.time_ms is None or not has_filter else f" than {moment(found.time_ms)}"
    verb = "not searched" if has_filter else "not shown"
    return f"{text} {grouped(found.left)} {way}{at}: {verb} yet."


def grouped(number: int) -> str:
    """With thin spaces between its thousands."""
    return f"{number:,}".replace(",", "\u202f")
