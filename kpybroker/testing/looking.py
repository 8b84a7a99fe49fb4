"""Looking into a broker and putting things into it: methods that `Broker` and `Cluster` have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from kpybroker.testing import look
from kpybroker.testing.waiting import WAIT_S

if TYPE_CHECKING:
    import os
    from types import TracebackType
    from typing import Self

    from kpybroker.testing.running.channel import Channel

Value = bytes | str | None | Mapping[str, Any] | Sequence[Any] | int | float
"""A key or value of a record: bytes, text, or what JSON can have."""


class Snapshot:
    """The state of all brokers at one moment. As a context manager it is dropped at the end of the block."""

    def __init__(self, channel: Channel, snapshot_id: Any) -> None:
        self._channel = channel
        self.id = snapshot_id

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

    def topics(self, *, internal: bool = False) -> dict[str, look.Topic]:
        """All topics by name; `internal` ones too."""
        found = map(look.topic_of, self.channel.call("topics", internal=internal))
        return {topic.name: topic for topic in found}

    def records(
        self,
        topic: str,
        partition: int | None = None,
        *,
        start: int | None = None,
        end: int | None = None,
        limit: int = 1000,
        isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    ) -> list[look.Record]:
        """The records of a topic, or of one of its partitions, in the order of partition and offset.

        From offset `start` up to, not including, `end`; at most `limit` in all.
        """
        wanted: dict[str, Any] = {"topic": topic, "partition": partition, "start": start, "end": end, "limit": limit}
        return list(map(look.record_of, self.channel.call("records", isolation=isolation, **wanted)))

    def groups(self) -> dict[str, look.Group]:
        """All groups by id."""
        return {group.group_id: group for group in map(look.group_of, self.channel.call("groups"))}

    def group(self, group: str) -> look.Group | None:
        """A group, None if there is none."""
        found = self.channel.call("group", group=group)
        return None if found is None else look.group_of(found)

    def committed(self, group: str) -> dict[str, dict[int, int]]:
        """The offsets that a group has committed: topic -> partition -> offset."""
        return self._commits(group, "offset")

    def lag(self, group: str) -> dict[str, dict[int, int]]:
        """How many records the group has not consumed yet, of what it has committed: topic -> partition -> records."""
        return self._commits(group, "lag")

    def _commits(self, group: str, field: str) -> dict[str, dict[int, int]]:
        found: dict[str, dict[int, int]] = {}
        for one in self.channel.call("committed", group=group):
            found.setdefault(one["topic"], {})[one["partition"]] = one[field]
        return found

    def end_offsets(self, topic: str) -> dict[int, int]:
        """The offset of the next record of each partition."""
        found = look.topic_of(self.channel.call("topic", name=topic))
        return {one.index: one.end_offset for one in found.partitions if one.end_offset is not None}

    def transactions(self) -> dict[str, look.Transaction]:
        """All transactional ids."""
        found = map(look.transaction_of, self.channel.call("transactions"))
        return {one.transactional_id: one for one in found}

    def requests(
        self,
        api: str | None = None,
        *,
        client_id: str | None = None,
        broker: int | None = None,
        since: int | None = None,
        limit: int = 1000,
    ) -> list[look.Request]:
        """The last requests that arrived, oldest first; `since`: those after the request of this number."""
        wanted: dict[str, Any] = {"api": api, "client_id": client_id, "broker": broker, "since": since, "limit": limit}
        return list(map(look.request_of, self.channel.call("requests", **wanted)))

    def clear_requests(self) -> None:
        """Forget the requests so far."""
        self.channel.call("clear_requests")

    def wait_requests(self, api: str, count: int = 1, *, client_id: str | None = None, timeout: float = WAIT_S) -> None:
        """Return once so many have arrived since the last `clear_requests`. Raises WaitTimeout."""
        wanted: dict[str, Any] = {"api": api, "client_id": client_id, "count": count}
        self.channel.call("wait_requests", wait_s=timeout, timeout_ms=round(timeout * 1000), **wanted)

    def client_metrics(self, client_id: str | None = None, *, name: str | None = None) -> list[look.ClientMetrics]:
        """What clients of this id have pushed of their metrics (KIP-714), those that pushed last at the end.

        A client that starts again is another one. `name`: only the series of this name.
        """
        found = self.channel.call("client_metrics", client_id=client_id, name=name)
        return list(map(look.client_metrics_of, found))

    def wait_client_metrics(
        self, client_id: str, *, name: str | None = None, pushes: int = 1, timeout: float = WAIT_S
    ) -> look.ClientMetrics:
        """The client of this id once it has pushed so often, and a metric of this name, if one is given.

        Raises WaitTimeout.
        """
        wanted: dict[str, Any] = {"client_id": client_id, "name": name, "pushes": pushes}
        limits: dict[str, Any] = {"wait_s": timeout, "timeout_ms": round(timeout * 1000)}
        return look.client_metrics_of(self.channel.call("wait_client_metrics", **wanted, **limits))

    def status(self) -> Mapping[str, Any]:
        """Version, process, and the state of each broker."""
        status: Mapping[str, Any] = self.channel.call("status")
        return status

    # --- put in

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

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until it is gone."""
        self.channel.call("delete_topic", name=name)

    def produce(
        self, topic: str, records: Iterable[Value | tuple[Value, Value] | look.Record]
    ) -> list[tuple[int, int]]:
        """Append records, in this order; the partition and offset of each.

        A record is a value, a pair of key and value, or a `Record`, whose partition, headers and timestamp are kept.
        Values that are not bytes or text become JSON.
        """
        found = self.channel.call("produce", topic=topic, records=[_record_json(one) for one in records])
        return [(one["partition"], one["offset"]) for one in found]

    def load(self, path: str | os.PathLike[str]) -> int:
        """Append the records of a file of JSON lines; how many.

        A line is an object with `topic` and `value`, and if need be `key`, `partition`, `headers` and `timestamp_ms`.
        """
        import json

        count = 0
        pending: list[dict[str, Any]] = []
        pending_topic = ""
        with open(path, encoding="utf-8") as lines:
            for line in filter(str.strip, lines):
                record = json.loads(line)
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

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        """Delete the records of a partition that are before this offset."""
        self.channel.call("delete_records", topic=topic, partition=partition, before=before)

    def compact(self, topic: str | None = None) -> None:
        """Compact one topic, or all that are compacted, now; return when it is done."""
        self.channel.call("compact", topic=topic)

    def apply_retention(self, topic: str | None = None) -> None:
        """Delete what retention does not keep, now."""
        self.channel.call("apply_retention", topic=topic)

    def snapshot(self) -> Snapshot:
        """Keep the state of all brokers, for `restore`."""
        return Snapshot(self.channel, self.channel.call("snapshot")["id"])

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to that state; clients reconnect by themselves."""
        self.channel.call("restore", id=snapshot.id)

    # --- what brokers serve

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

    def unsubscribe_client_metrics(self, subscription: str = "test") -> None:
        """Ask clients no more."""
        self.channel.call("subscribe_client_metrics", subscription=subscription, metrics=[])

    def cap_versions(
        self,
        as_version: str | None = None,
        apis: Mapping[str, int | tuple[int, int] | None] | None = None,
        broker: int | None = None,
    ) -> None:
        """Serve what another Kafka ("2.4") served, or only some versions of some APIs (None: not at all).

        A release has its features as well: "3.9" refuses consumer groups (KIP-848).
        Without arguments all are served again.
        """
        ranges = {api: list(one) if isinstance(one, tuple) else one for api, one in (apis or {}).items()}
        self.channel.call("cap_versions", as_version=as_version, apis=ranges, broker=broker)

    def reset(self) -> None:
        """Remove all faults, resume what is paused, heal the network. Clock and data stay as they are."""
        self.channel.call("reset")


RECORDS_AT_ONCE = 1000


def text_of(value: Any) -> str:
    """A value of a configuration key as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _record_json(record: Any) -> dict[str, Any]:
    if isinstance(record, look.Record):
        return {
            "key": look.to_json(record.key),
            "value": look.to_json(record.value),
            "partition": record.partition,
            "headers": [[name, look.to_json(value)] for name, value in record.headers],
            "timestamp_ms": record.timestamp_ms,
        }
    key, value = record if isinstance(record, tuple) else (None, record)
    return {"key": _value_json(key), "value": _value_json(value)}


def _value_json(value: Any) -> Any:
    if isinstance(value, bytes) or value is None:
        return look.to_json(value)
    return look.to_json(to_value(value))


def to_value(value: Any) -> bytes | None:
    """The bytes of a key or value as a test writes it."""
    import json

    if value is None or isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode()
