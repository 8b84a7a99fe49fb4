"""Assertions about a broker that say what is there instead: methods that `Broker` and `Cluster` have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from kpybroker.testing.look import Record
from kpybroker.testing.looking import Looking, to_value
from kpybroker.testing.running.options import takes

if TYPE_CHECKING:
    from typing import Unpack

SHOWN_MAX = 20


class Comparison(TypedDict, total=False):
    """The keyword arguments of `assert_records` beyond what it compares with; `Compared` has their defaults."""

    partition: int | None
    in_any_order: bool
    committed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """See `Asserting.assert_records`."""

    partition: int | None = None
    in_any_order: bool = False
    committed: bool = True


class Asserting(Looking):
    """Each method raises AssertionError. What other tasks are about to do is awaited by `wait_for` first."""

    @takes(Compared)
    def assert_records(
        self,
        topic: str,
        values: Sequence[Any] | None = None,
        *,
        keys: Sequence[Any] | None = None,
        count: int | None = None,
        **how: Unpack[Comparison],
    ) -> list[Record]:
        """The topic has exactly these records, in the order of partition and offset; they are returned.

        Values and keys are compared as bytes, text or JSON, as they are given here. `partition`: of this one alone.
        `in_any_order`: or in another order. `committed`: those of open and aborted transactions do not count.
        """
        compared = Compared(**how)
        limit = 1 + max(len(values or ()), len(keys or ()), count or 0, SHOWN_MAX)
        isolation: Any = "read_committed" if compared.committed else "read_uncommitted"
        records = self.records(topic, compared.partition, limit=limit, isolation=isolation)
        if count is not None and len(records) != count:
            raise AssertionError(f"{topic} has {_counted(len(records), limit)}, not {count}: {_shown(records)}")
        for what, wanted in (("value", values), ("key", keys)):
            if wanted is not None:
                _compare(topic, records, what, list(wanted), compared.in_any_order)
        return records

    def assert_committed(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """The group has committed exactly these offsets of the topic."""
        found = self.committed(group).get(topic, {})
        if found != dict(offsets):
            raise AssertionError(f"group {group} has committed {found} of {topic}, not {dict(offsets)}")

    def assert_lag(self, group: str, lag: int, topic: str | None = None) -> None:
        """The group lags so many records behind, in one topic or in all that it has committed offsets of."""
        found = {name: lags for name, lags in self.lag(group).items() if topic in (None, name)}
        if topic is not None and topic not in found:
            raise AssertionError(f"group {group} has committed no offset of {topic}")
        total = sum(sum(by.values()) for by in found.values())
        if total != lag:
            raise AssertionError(f"group {group} lags {total} records behind, not {lag}: {found}")

    def assert_no_requests(self, api: str | None = None, *, client_id: str | None = None) -> None:
        """No such request has arrived since the last `clear_requests`."""
        found = self.requests(api, client_id=client_id, limit=SHOWN_MAX)
        if found:
            listed = ", ".join(f"{one.api} v{one.version} of {one.client_id}" for one in found)
            raise AssertionError(f"{_counted(len(found), SHOWN_MAX)} requests have arrived: {listed}")


def _compare(topic: str, records: list[Record], what: str, wanted: list[Any], in_any_order: bool) -> None:
    found = [record.value if what == "value" else record.key for record in records]
    same = [_is(one, expected) for one, expected in zip(found, wanted, strict=False)]
    if in_any_order:
        left = list(found)
        missing = [one for one in wanted if not _taken(left, one)]
        if not missing and not left:
            return
        cause = f"{_text(missing)} missing" if missing else ""
        extra = f"{_text(left)} too many" if left else ""
        raise AssertionError(f"{topic}: {what}s differ: {', '.join(filter(None, (cause, extra)))}; {_shown(records)}")
    if len(found) == len(wanted) and all(same):
        return
    if len(found) != len(wanted) and all(same):
        raise AssertionError(f"{topic} has {len(found)} records, not {len(wanted)}: {_shown(records)}")
    at = same.index(False)
    place = f"partition {records[at].partition}, offset {records[at].offset}"
    raise AssertionError(f"{topic}: the {what} at {place} is {found[at]!r}, not {wanted[at]!r}; {_shown(records)}")


def _taken(left: list[Any], wanted: Any) -> bool:
    for index, one in enumerate(left):
        if _is(one, wanted):
            del left[index]
            return True
    return False


def _is(found: bytes | None, wanted: Any) -> bool:
    """Whether these are the same, as bytes or as JSON."""
    if wanted is None or isinstance(wanted, (bytes, str)):
        return found == to_value(wanted)
    import json

    try:
        return found is not None and bool(json.loads(found) == wanted)
    except ValueError:
        return False


def _counted(count: int, limit: int) -> str:
    return f"{limit} or more" if count >= limit else str(count)


def _text(values: Sequence[Any]) -> str:
    return ", ".join(repr(one) for one in values[:SHOWN_MAX])


def _shown(records: Sequence[Record]) -> str:
    if not records:
        return "no records"
    lines = [f"{one.partition}@{one.offset} {one.key!r}: {one.value!r}" for one in records[:SHOWN_MAX]]
    more = [f"and {len(records) - SHOWN_MAX} more"] if len(records) > SHOWN_MAX else []
    return "\n  ".join(["records:", *lines, *more])
