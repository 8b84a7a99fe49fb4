"""Assertions about a broker that say what is there instead: methods that `Broker` and `Cluster` have in common."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypedDict

from kpybroker.testing.checking import kinds
from kpybroker.testing.checking.calls import Kind, checked, shown
from kpybroker.testing.errors import NotThere, UsageError
from kpybroker.testing.look import Record
from kpybroker.testing.looking import Looking, Value, all_of, to_value
from kpybroker.testing.running.options import takes

if TYPE_CHECKING:
    from typing import Unpack

    from kpybroker.testing.typed.names import Apis, Isolation
    from kpybroker.testing.typed.several import Many

SHOWN_MAX = 20


class Comparison(TypedDict, total=False):
    """The keyword arguments of `assert_records` beyond what it compares with; `Compared` has their defaults."""

    partition: int | None
    in_any_order: bool
    isolation: Isolation
    committed: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """See `Asserting.assert_records`. `committed` is the name that `isolation` had before."""

    partition: int | None = None
    in_any_order: bool = False
    isolation: Isolation = "read_committed"
    committed: bool | None = None

    @property
    def level(self) -> Isolation:
        """The isolation, by either name."""
        if self.committed is None:
            return self.isolation
        warnings.warn("assert_records(committed=): use isolation=", DeprecationWarning, stacklevel=4)
        return "read_committed" if self.committed else "read_uncommitted"


COMPARISON: Final[Mapping[str, Kind]] = {
    "partition": kinds.optional(kinds.index),
    "in_any_order": kinds.flag,
    "isolation": kinds.named("Isolation"),
    "committed": kinds.optional(kinds.flag),
}
"""The kinds of `Comparison`."""
_VALUES: Final = kinds.optional(kinds.listed("values"))


class Asserting(Looking):
    """Each method raises AssertionError. What other tasks are about to do is awaited by `wait_for` first."""

    @takes(Compared)
    @checked(
        COMPARISON,
        topic=kinds.topic,
        values=_VALUES,
        keys=kinds.optional(kinds.listed("keys")),
        count=kinds.optional(kinds.integer(0, kinds.OFFSET_MAX)),
    )
    def assert_records(
        self,
        topic: str,
        values: Many[Value] | None = None,
        *,
        keys: Many[Value] | None = None,
        count: int | None = None,
        **how: Unpack[Comparison],
    ) -> list[Record]:
        """The topic has exactly these records, in the order of partition and offset; they are returned.

        Values and keys are compared as bytes, text or JSON, as they are given here; at least one of `values`, `keys`
        and `count` is. `partition`: of this one alone. `in_any_order`: or in another order. `isolation`: by default
        those of open and aborted transactions do not count; with "read_uncommitted" they do.
        """
        compared = Compared(**how)
        wanted = _Expectation.of(values, keys, count, compared.in_any_order)
        limit = 1 + max(wanted.count or 0, SHOWN_MAX)
        records = self.records(topic, compared.partition, limit=limit, isolation=compared.level)
        if count is not None and len(records) != count:
            raise AssertionError(f"{topic} has {_counted(len(records), limit)}, not {count}: {_shown(records)}")
        wanted.compare(topic, records, compared.in_any_order)
        return records

    @checked(
        group=kinds.text,
        topic=kinds.topic,
        offsets=kinds.mapping(kinds.index, kinds.offset, "a mapping of partitions to offsets"),
    )
    def assert_committed(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """The group has committed exactly these offsets of the topic. Both exist."""
        found = self.committed(group).get(topic)
        if found is None:
            self.end_offsets(topic)  # raises if there is no such topic
            found = {}
        if found != dict(offsets):
            raise AssertionError(f"group {group} has committed {found} of {topic}, not {dict(offsets)}")

    @checked(
        group=kinds.text,
        topic=kinds.topic,
        offsets=kinds.listed("offsets"),
        partition=kinds.index,
    )
    def assert_acknowledged(self, group: str, topic: str, offsets: Many[int], *, partition: int = 0) -> None:
        """The share group never delivers these again: each is accepted, or below the partition's start offset."""
        found = self.share_group(group)
        if found is None:
            raise NotThere(f"there is no share group {group!r}", "wait for it, or correct its name")
        wanted = [*offsets]
        missing = [offset for offset in wanted if not found.is_done(topic, offset, partition)]
        if missing:
            there = [one for one in found.partitions if (one.topic, one.partition) == (topic, partition)]
            raise AssertionError(f"share group {group} has not acknowledged {missing} of {topic}-{partition}: {there}")

    @checked(
        group=kinds.text,
        lag=kinds.offset,
        topic=kinds.optional(kinds.topic),
        partition=kinds.optional(kinds.index),
    )
    def assert_lag(self, group: str, lag: int, topic: str | None = None, *, partition: int | None = None) -> None:
        """The group lags so many records behind, in one topic or in all that it reads; see `lag`.

        `partition`: in this one alone, of a topic.
        """
        if partition is not None and topic is None:
            raise UsageError(f"assert_lag(partition={partition})", "give its topic, too")
        found = {name: lags for name, lags in self.lag(group).items() if topic in (None, name)}
        if not found:
            if topic is not None:
                self.end_offsets(topic)  # raises if there is no such topic
            raise AssertionError(f"group {group} has committed no offset of {topic or 'any topic'}, and reads none")
        if topic is not None and partition is not None:
            if partition not in found[topic]:
                raise UsageError(f"{topic} has no partition {partition}", f"give one of {sorted(found[topic])}")
            found = {topic: {partition: found[topic][partition]}}
        total = sum(sum(by.values()) for by in found.values())
        if total != lag:
            raise AssertionError(f"group {group} lags {total} records behind, not {lag}: {found}")

    @checked(api=kinds.optional(kinds.one_or_each(kinds.api, "names of APIs")), client_id=kinds.optional(kinds.text))
    def assert_no_requests(self, api: Apis | None = None, *, client_id: str | None = None) -> None:
        """No such request has arrived since the last `clear_requests`. Raises UsageError where the log is too short."""
        wanted: dict[str, Any] = {"api": api, "client_id": client_id}
        there = self.channel.call("wait_requests", count=0, timeout_ms=0, **wanted)
        if there["count"]:
            found = self.requests(api, client_id=client_id, limit=SHOWN_MAX)
            listed = ", ".join(f"{one.api} v{one.version} of {one.client_id}" for one in found)
            raise AssertionError(f"{_counted(len(found), SHOWN_MAX)} requests have arrived: {listed}")
        if there["dropped"]:
            cause = f"the broker has forgotten {there['dropped']} requests that arrived since the last clear_requests()"
            raise UsageError(cause, "call clear_requests() shortly before what is not to make requests")


@dataclass(frozen=True, slots=True)
class _Expectation:
    """What `assert_records` compares with, by what it is of a record. Raises UsageError where that makes no sense."""

    lists: Mapping[str, list[Any]]
    count: int | None

    @classmethod
    def of(
        cls, values: Many[Value] | None, keys: Many[Value] | None, count: int | None, in_any_order: bool
    ) -> _Expectation:
        """What was given."""
        lists: dict[str, list[Any]] = {}
        for what, given in (("value", values), ("key", keys)):
            if given is None:
                continue
            if isinstance(given, (set, frozenset)) and not in_any_order:
                raise UsageError(f"assert_records({what}s={shown(given)})", "a set has no order: say in_any_order=True")
            lists[what] = list(given) if isinstance(given, tuple) else all_of(given, "assert_records", f"{what}s")
            for one in lists[what]:
                if isinstance(one, (tuple, Record)):
                    fix = "give values=[...] of values, and keys=[...] of keys"
                    raise UsageError(f"assert_records({what}s=[{shown(one)}])", fix)
        sizes = {len(one) for one in lists.values()} | ({count} if count is not None else set())
        if not sizes:
            raise UsageError("assert_records() with nothing to compare with", "give values=, keys= or count=")
        if len(sizes) > 1:
            given_ = ", ".join([*(f"{len(one)} {what}s" for what, one in lists.items())])
            raise UsageError(f"assert_records(): {given_}, count={count}", "give as many of each")
        return cls(lists, sizes.pop())

    def compare(self, topic: str, records: list[Record], in_any_order: bool) -> None:
        """Raise AssertionError where the records are others."""
        if not in_any_order:
            for what, wanted in self.lists.items():
                _compare(topic, records, what, wanted)
        elif len(self.lists) == 2:
            pairs = [(record.key, record.value) for record in records]
            _compare_sets(topic, records, "pair", pairs, list(zip(self.lists["key"], self.lists["value"], strict=True)))
        else:
            for what, wanted in self.lists.items():
                _compare_sets(topic, records, what, _field(records, what), wanted)


def _field(records: list[Record], what: str) -> list[bytes | None]:
    return [record.value if what == "value" else record.key for record in records]


def _compare(topic: str, records: list[Record], what: str, wanted: list[Any]) -> None:
    found = _field(records, what)
    same = [_is(one, expected) for one, expected in zip(found, wanted, strict=False)]
    if len(found) == len(wanted) and all(same):
        return
    if len(found) != len(wanted) and all(same):
        raise AssertionError(f"{topic} has {len(found)} records, not {len(wanted)}: {_shown(records)}")
    at = same.index(False)
    place = f"partition {records[at].partition}, offset {records[at].offset}"
    raise AssertionError(f"{topic}: the {what} at {place} is {found[at]!r}, not {wanted[at]!r}; {_shown(records)}")


def _compare_sets(topic: str, records: list[Record], what: str, found: list[Any], wanted: list[Any]) -> None:
    left = list(found)
    missing = [one for one in wanted if not _taken(left, one)]
    if not missing and not left:
        return
    cause = f"{_text(missing)} missing" if missing else ""
    extra = f"{_text(left)} too many" if left else ""
    raise AssertionError(f"{topic}: {what}s differ: {', '.join(filter(None, (cause, extra)))}; {_shown(records)}")


def _taken(left: list[Any], wanted: Any) -> bool:
    for index, one in enumerate(left):
        is_pair = isinstance(wanted, tuple)
        if all(map(_is, one, wanted)) if is_pair else _is(one, wanted):
            del left[index]
            return True
    return False


def _is(found: bytes | None, wanted: Any) -> bool:
    """Whether these are the same, as bytes or as JSON."""
    if wanted is None or isinstance(wanted, (bytes, bytearray, memoryview, str)):
        return found == to_value(wanted)
    import json

    try:
        return found is not None and _is_same_json(json.loads(found), wanted)
    except ValueError:
        return False


def _is_same_json(found: Any, wanted: Any) -> bool:
    """As Python compares, but true is not 1: at any depth."""
    if isinstance(found, dict) and isinstance(wanted, Mapping):
        return found.keys() == wanted.keys() and all(_is_same_json(found[name], wanted[name]) for name in found)
    if isinstance(found, list) and isinstance(wanted, (list, tuple)):
        return len(found) == len(wanted) and all(map(_is_same_json, found, wanted))
    if isinstance(wanted, (bool, int, float)) and isinstance(found, bool) is not isinstance(wanted, bool):
        return False
    return bool(found == wanted)


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
