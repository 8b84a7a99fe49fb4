"""Looking into a broker and putting things into it: methods that `Broker` and `Cluster` have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kpybroker.testing import look
from kpybroker.testing.checking import files, kinds
from kpybroker.testing.checking.calls import checked, did_you_mean, shown
from kpybroker.testing.errors import NotThere, UsageError
from kpybroker.testing.running.options import text_of
from kpybroker.testing.waiting import WAIT_S

if TYPE_CHECKING:
    import os
    from types import TracebackType
    from typing import Self

    from kpybroker.testing.running.channel import Channel
    from kpybroker.testing.typed.names import ApiName, Apis, Isolation, Release
    from kpybroker.testing.typed.several import Many

Value = bytes | str | None | Mapping[str, Any] | Sequence[Any] | int | float
"""A key or value of a record: bytes, text, or what JSON can have."""

RECORDS_MAX: Final = 100_000
"""So many records are read at once."""
REQUESTS_MAX: Final = 10_000
"""So many requests the broker remembers."""
_RECORDS: Final = kinds.listed("records")
_BROKER: Final = kinds.optional(kinds.index)
_API: Final = kinds.one_or_each(kinds.api, "names of APIs")
_CLIENT: Final = kinds.optional(kinds.text)
_RANGE: Final = kinds.version_range


class Snapshot:
    """The state of all brokers at one moment. As a context manager it is dropped at the end of the block."""

    def __init__(self, channel: Channel, snapshot_id: Any) -> None:
        self._channel = channel
        self.id = snapshot_id

    @property
    def channel(self) -> Channel:
        """That of its brokers."""
        return self._channel

    @checked()
    def drop(self) -> None:
        """Forget it, and free what it takes on the disk."""
        self._channel.call("drop_snapshot", id=self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop()


class Looking:
    """What needs nothing but the channel."""

    @property
    def channel(self) -> Channel:
        """The client of the control channel: `broker.channel.call("status")`."""
        raise NotImplementedError

    # --- look

    @checked(internal=kinds.flag)
    def topics(self, *, internal: bool = False) -> dict[str, look.Topic]:
        """All topics by name; `internal` ones too."""
        found = map(look.topic_of, self.channel.call("topics", internal=internal))
        return {topic.name: topic for topic in found}

    @checked(
        topic=kinds.topic,
        partition=kinds.optional(kinds.index),
        start=kinds.optional(kinds.offset),
        end=kinds.optional(kinds.offset),
        limit=kinds.optional(kinds.integer(1, RECORDS_MAX)),
        isolation=kinds.named("Isolation"),
    )
    def records(
        self,
        topic: str,
        partition: int | None = None,
        *,
        start: int | None = None,
        end: int | None = None,
        limit: int | None = None,
        isolation: Isolation = "read_committed",
    ) -> list[look.Record]:
        """The records of a topic, or of one of its partitions, in the order of partition and offset.

        From offset `start` up to, not including, `end`; at most `limit` in all. Those of open and aborted transactions
        are left out, as in `assert_records`; `isolation="read_uncommitted"` has them.
        """
        if start is not None and end is not None and start > end:
            raise UsageError(f"records(start={start}, end={end})", "give a start that is not behind the end")
        wanted: dict[str, Any] = {"topic": topic, "partition": partition, "start": start, "end": end}
        wanted |= {"limit": RECORDS_MAX if limit is None else limit, "isolation": isolation}
        found = self.channel.call("records", **wanted)
        if limit is None and len(found) == RECORDS_MAX:
            raise UsageError(
                f"{topic} has {RECORDS_MAX} records or more", "read them in parts, with partition=, start= and end="
            )
        return list(map(look.record_of, found))

    @checked()
    def groups(self) -> dict[str, look.Group]:
        """All groups by id."""
        return {group.group_id: group for group in map(look.group_of, self.channel.call("groups"))}

    @checked(group=kinds.text)
    def group(self, group: str) -> look.Group | None:
        """A group, None if there is none."""
        found = self.channel.call("group", group=group)
        return None if found is None else look.group_of(found)

    @checked(group=kinds.text)
    def share_group(self, group: str) -> look.ShareGroup | None:
        """A share group (KIP-932) with what its members hold; None if there is none."""
        found = self.channel.call("share_group", group=group)
        return None if found is None else look.share_group_of(found)

    @checked(group=kinds.text)
    def committed(self, group: str) -> dict[str, dict[int, int]]:
        """The offsets that a group has committed: topic -> partition -> offset. Raises NotThere for no such group."""
        found: dict[str, dict[int, int]] = {}
        for one in self._commits(group):
            found.setdefault(one["topic"], {})[one["partition"]] = one["offset"]
        return found

    @checked(group=kinds.text)
    def lag(self, group: str) -> dict[str, dict[int, int]]:
        """How many records the group has not consumed yet: topic -> partition -> records. Raises NotThere.

        Of all partitions of the topics of which it has committed an offset, or to which its members subscribe: one
        without a committed offset lags by all its records.
        """
        commits = {(one["topic"], one["partition"]): one["lag"] for one in self._commits(group)}
        there = self.group(group)
        topics = dict.fromkeys(topic for topic, _ in commits)
        for member in there.members if there is not None else ():
            topics |= dict.fromkeys((*member.subscription, *member.assignment))
        return {topic: self._lags(topic, commits) for topic in topics if self._has_topic(topic)}

    def _has_topic(self, topic: str) -> bool:
        """A group may have offsets of a topic that is deleted since."""
        try:
            self.channel.call("topic", name=topic)
        except UsageError:
            return False
        return True

    def _lags(self, topic: str, commits: Mapping[tuple[str, int], int | None]) -> dict[int, int]:
        found = look.topic_of(self.channel.call("topic", name=topic))
        return {one.index: _lag(topic, one, commits.get((topic, one.index))) for one in found.partitions}

    def _commits(self, group: str) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self.channel.call("committed", group=group)
        if not found and self.group(group) is None:
            near = did_you_mean(group, self.groups())
            fix = near if near.startswith("did") else "wait for it, or assert that broker.group(...) is None"
            raise NotThere(f"there is no group {group!r}", fix)
        return found

    @checked(topic=kinds.topic)
    def end_offsets(self, topic: str) -> dict[int, int]:
        """The offset of the next record of each partition. Raises NotThere where one has no leader."""
        found = look.topic_of(self.channel.call("topic", name=topic))
        return {one.index: _known(topic, one, one.end_offset) for one in found.partitions}

    @checked()
    def transactions(self) -> dict[str, look.Transaction]:
        """All transactional ids."""
        found = map(look.transaction_of, self.channel.call("transactions"))
        return {one.transactional_id: one for one in found}

    @checked(
        api=kinds.optional(_API),
        client_id=_CLIENT,
        broker=_BROKER,
        since=kinds.optional(kinds.offset),
        limit=kinds.integer(1, REQUESTS_MAX),
    )
    def requests(
        self,
        api: Apis | None = None,
        *,
        client_id: str | None = None,
        broker: int | None = None,
        since: int | None = None,
        limit: int = REQUESTS_MAX,
    ) -> list[look.Request]:
        """The last requests that arrived, oldest first; `since`: those after the request of this number."""
        wanted: dict[str, Any] = {"api": api, "client_id": client_id, "broker": broker, "since": since, "limit": limit}
        return list(map(look.request_of, self.channel.call("requests", **wanted)))

    @checked()
    def clear_requests(self) -> None:
        """Forget the requests so far."""
        self.channel.call("clear_requests")

    @checked(api=_API, count=kinds.count, client_id=_CLIENT, timeout=kinds.timeout)
    def wait_requests(
        self, api: Apis, count: int = 1, *, client_id: str | None = None, timeout: float = WAIT_S
    ) -> None:
        """Return once so many have arrived since the last `clear_requests`. Raises WaitTimeout."""
        wanted: dict[str, Any] = {"api": api, "client_id": client_id, "count": count}
        self.channel.call("wait_requests", wait_s=timeout, timeout_ms=round(timeout * 1000), **wanted)

    @checked(client_id=kinds.optional(kinds.text), name=kinds.optional(kinds.text))
    def client_metrics(self, client_id: str | None = None, *, name: str | None = None) -> list[look.ClientMetrics]:
        """What clients of this id have pushed of their metrics (KIP-714), those that pushed last at the end.

        A client that starts again is another one. `name`: only the series of this name.
        """
        found = self.channel.call("client_metrics", client_id=client_id, name=name)
        return list(map(look.client_metrics_of, found))

    @checked(client_id=kinds.text, name=kinds.optional(kinds.text), pushes=kinds.count, timeout=kinds.timeout)
    def wait_client_metrics(
        self, client_id: str, *, name: str | None = None, pushes: int = 1, timeout: float = WAIT_S
    ) -> look.ClientMetrics:
        """The client of this id once it has pushed so often, and a metric of this name, if one is given.

        Raises WaitTimeout.
        """
        wanted: dict[str, Any] = {"client_id": client_id, "name": name, "pushes": pushes}
        limits: dict[str, Any] = {"wait_s": timeout, "timeout_ms": round(timeout * 1000)}
        return look.client_metrics_of(self.channel.call("wait_client_metrics", **wanted, **limits))

    @checked()
    def status(self) -> Mapping[str, Any]:
        """Version, process, and the state of each broker."""
        status: Mapping[str, Any] = self.channel.call("status")
        return status

    # --- put in

    @checked(
        name=kinds.topic,
        partitions=kinds.partitions,
        replication_factor=kinds.optional(kinds.count),
        config=kinds.optional(kinds.settings),
    )
    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Create a topic and wait until it has leaders. `config` has Kafka's keys."""
        settings = {key: text_of(value) for key, value in (config or {}).items()}
        self.channel.call(
            "create_topic", name=name, partitions=partitions, replication_factor=replication_factor, config=settings
        )

    @checked(name=kinds.topic)
    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until it is gone."""
        self.channel.call("delete_topic", name=name)

    @checked(topic=kinds.topic, records=_RECORDS)
    def produce(self, topic: str, records: Many[Value | tuple[Value, Value] | look.Record]) -> list[tuple[int, int]]:
        """Append records, in this order; the partition and offset of each.

        A record is a value, a pair of key and value, or a `Record`, whose partition, headers and timestamp are kept.
        Values that are not bytes or text become JSON.
        """
        given = [_record_json(one, number) for number, one in enumerate(all_of(records, "produce", "records"))]
        found = self.channel.call("produce", topic=topic, records=given)
        return [(one["partition"], one["offset"]) for one in found]

    @checked(path=kinds.path)
    def load(self, path: str | os.PathLike[str]) -> int:
        """Append the records of a file of JSON lines; how many.

        A line is an object with `topic` and `value`, and if need be `key`, `partition`, `headers` and `timestamp_ms`.
        What is wrong in it is an error that names its line, and then nothing is appended.
        """
        count = 0
        pending: list[dict[str, Any]] = []
        pending_topic = ""
        for record in files.records(path):
            topic = record.pop("topic")
            if topic != pending_topic or len(pending) == RECORDS_AT_ONCE:
                self._flush(pending_topic, pending)
                pending, pending_topic = [], topic
            for name in ("key", "value"):
                record[name] = _value_json(record.get(name))
            pending.append(record)
            count += 1
        self._flush(pending_topic, pending)
        return count

    def _flush(self, topic: str, records: list[dict[str, Any]]) -> None:
        if records:
            self.channel.call("produce", topic=topic, records=records)

    @checked(topic=kinds.topic, before=kinds.integer(-1, kinds.OFFSET_MAX), partition=kinds.index)
    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        """Delete the records of a partition that are before this offset."""
        self.channel.call("delete_records", topic=topic, partition=partition, before=before)

    @checked(topic=kinds.optional(kinds.topic))
    def compact(self, topic: str | None = None) -> None:
        """Compact one topic, or all that are compacted, now; return when it is done."""
        self.channel.call("compact", topic=topic)

    @checked(topic=kinds.optional(kinds.topic))
    def apply_retention(self, topic: str | None = None) -> None:
        """Delete what retention does not keep, now."""
        self.channel.call("apply_retention", topic=topic)

    @checked()
    def snapshot(self) -> Snapshot:
        """Keep the state of all brokers, for `restore`."""
        return Snapshot(self.channel, self.channel.call("snapshot")["id"])

    @checked(snapshot=kinds.instance_of(lambda: Snapshot, "give what broker.snapshot() returned"))
    def restore(self, snapshot: Snapshot) -> None:
        """Go back to that state; clients reconnect by themselves."""
        if snapshot.channel is not self.channel:
            raise UsageError("the snapshot is of another broker, or of an earlier start", "take one of this broker")
        self.channel.call("restore", id=snapshot.id)

    # --- what brokers serve

    @checked(
        metrics=kinds.each(kinds.text, "prefixes of names"),
        interval_ms=kinds.integer(100, 3_600_000),
        match=kinds.optional(kinds.mapping(kinds.text, kinds.text, "a mapping of attributes to patterns")),
        subscription=kinds.text,
    )
    def subscribe_client_metrics(
        self,
        *metrics: str,
        interval_ms: int = 1000,
        match: Mapping[str, str] | None = None,
        subscription: str = "test",
    ) -> None:
        """Ask clients to push (KIP-714) the metrics with these prefixes; by default all of Kafka's.

        `match` limits it to some clients, by regular expressions: `{"client_id": "orders.*"}`. Calling it again changes
        the subscription of this name. Clients ask for it when they start, and as often as they push.
        """
        patterns = [f"{name}={pattern}" for name, pattern in (match or {}).items()]
        wanted: dict[str, Any] = {"metrics": list(metrics) or None, "match": patterns, "subscription": subscription}
        self.channel.call("subscribe_client_metrics", interval_ms=interval_ms, **wanted)

    @checked(subscription=kinds.text)
    def unsubscribe_client_metrics(self, subscription: str = "test") -> None:
        """Ask clients no more."""
        self.channel.call("subscribe_client_metrics", subscription=subscription, metrics=[])

    @checked(
        as_version=kinds.optional(kinds.release),
        apis=kinds.optional(kinds.mapping(kinds.text, _RANGE, "a mapping of APIs to versions")),
        broker=_BROKER,
    )
    def cap_versions(
        self,
        as_version: Release | None = None,
        apis: Mapping[ApiName, int | tuple[int, int] | None] | None = None,
        broker: int | None = None,
    ) -> None:
        """Serve what another Kafka ("2.4") served, or only some versions of some APIs (None: not at all).

        A release has its features as well: "3.9" refuses consumer groups (KIP-848).
        Without arguments all are served again.
        """
        ranges = {api: list(one) if isinstance(one, tuple) else one for api, one in (apis or {}).items()}
        self.channel.call("cap_versions", as_version=as_version, apis=ranges, broker=broker)

    @checked()
    def reset(self) -> None:
        """Remove all faults, resume what is paused, heal the network. Clock and data stay as they are."""
        self.channel.call("reset")


RECORDS_AT_ONCE = 1000


def all_of(given: Iterable[Any], call: str, name: str) -> list[Any]:
    """What a list or iterator has. Raises UsageError for what is one record itself, and for an iterator without any."""
    if isinstance(given, tuple) and given and not all(isinstance(one, (tuple, look.Record)) for one in given):
        raise UsageError(f"{call}({name}={shown(given)})", f"give a list of {name}; a tuple is a pair of key and value")
    found = list(given)
    if not found and not hasattr(given, "__len__"):
        raise UsageError(f"{call}({name}={shown(given)})", f"give {name}: this iterator has none, or was read before")
    return found


def _lag(topic: str, partition: look.Partition, committed: int | None) -> int:
    """Of a partition with or without a committed offset."""
    start, high_watermark = partition.start_offset, partition.high_watermark
    _known(topic, partition, high_watermark)
    assert start is not None
    assert high_watermark is not None
    return high_watermark - start if committed is None else committed


def _known(topic: str, partition: look.Partition, offset: int | None) -> int:
    if offset is None:
        raise NotThere(f"{topic}-{partition.index} has no leader, so its offsets are not known", "start its brokers")
    return offset


def _record_json(record: Any, number: int) -> dict[str, Any]:
    try:
        return _as_json(record)
    except (TypeError, ValueError, RecursionError) as error:
        fix = "give a value, a pair (key, value), or a Record; a value is bytes, text, or what JSON can have"
        raise UsageError(f"produce: record {number} is {shown(record)}: {error}", fix) from None


def _as_json(record: Any) -> dict[str, Any]:
    if isinstance(record, look.Record):
        return {
            "key": look.to_json(record.key),
            "value": look.to_json(record.value),
            "partition": record.partition,
            "headers": [[name, look.to_json(value)] for name, value in record.headers],
            "timestamp_ms": record.timestamp_ms,
        }
    if isinstance(record, tuple) and len(record) != 2:
        raise ValueError(f"a tuple of {len(record)} is not a pair")
    key, value = record if isinstance(record, tuple) else (None, record)
    return {"key": _value_json(key), "value": _value_json(value)}


def _value_json(value: Any) -> Any:
    return look.to_json(to_value(value))


def to_value(value: Any) -> bytes | None:
    """The bytes of a key or value as a test writes it. Raises TypeError or ValueError for what cannot be one."""
    import json

    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    return (value if isinstance(value, str) else json.dumps(value, allow_nan=False)).encode()
