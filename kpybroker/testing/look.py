"""What one can see in a broker: topics, records, groups, transactions, requests, as values.

Keys and values of records are bytes, as they are in the log. Times are milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from kpybroker.testing.typed.names import ApiName, ErrorName, GroupState, GroupType, TransactionState

JsonObject = Mapping[str, Any]

SHOWN_MAX: Final = 20
"""Names in the text of an error."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as its leader sees it. `leader` is None while it has none; offsets and size are None then."""

    index: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    start_offset: int | None
    high_watermark: int | None
    last_stable_offset: int | None
    end_offset: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic. `config` has the keys that were set for it."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[Partition, ...]
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a log. Producer id, epoch and sequence are -1 where it has none."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime"
    leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    is_transactional: bool = False

    @property
    def text(self) -> str | None:
        """The value as text. Raises UnicodeDecodeError where it is none."""
        return None if self.value is None else self.value.decode()

    @property
    def key_text(self) -> str | None:
        """The key as text. Raises UnicodeDecodeError where it is none."""
        return None if self.key is None else self.key.decode()

    def json(self) -> Any:
        """The value as JSON. Raises ValueError where it is none."""
        import json

        return None if self.value is None else json.loads(self.value)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group. `assignment` and `subscription` are those of consumers, empty for any other protocol type.

    Of a pattern, a member of a consumer group has the topics that it matches.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    subscription: tuple[str, ...]
    assignment: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Group:
    """A group, as its coordinator knows it; the `state` has Kafka's names: Empty, PreparingRebalance, Stable ...

    `type` is "classic", "consumer" (KIP-848) or "streams" (KIP-1071). The latter two are Empty, Assigning, Reconciling
    or Stable, a streams group also NotReady. Their epoch is the `generation`, and they have no leader; the `protocol`
    is the assignor. A member of a streams group has what its active tasks read as its assignment.
    """

    group_id: str
    type: GroupType
    state: GroupState
    coordinator: int | None
    generation: int
    protocol_type: str
    protocol: str
    leader: str | None
    members: tuple[Member, ...]


ShareRecordState = Literal["available", "acquired", "acknowledged", "archived"]


@dataclass(frozen=True, slots=True)
class ShareRecords:
    """Records of a share group from `first` to `last` (inclusive) that were delivered before, all in one state."""

    first: int
    last: int
    state: ShareRecordState
    delivery_count: int
    member_id: str | None
    """Who has acquired them; None for other states."""
    locked_until_ms: int | None = None
    """Until when, on the broker's clock; None for other states, and once no broker that is up leads the partition."""

    @property
    def offsets(self) -> range:
        """Of all of them."""
        return range(self.first, self.last + 1)


ArchiveReason = Literal["rejected", "delivery_limit", "below_start", "no_record"]


@dataclass(frozen=True, slots=True)
class ArchivedRecords:
    """Records from `first` to `last` (inclusive) that were given up, and why.

    "rejected" by a member; delivered as often as the "delivery_limit" allows; "below_start": deleted from the log
    before a member had finished them; "no_record": compacted, or of an aborted transaction.
    """

    first: int
    last: int
    reason: ArchiveReason
    delivery_count: int
    member_id: str | None
    """Who had acquired them last."""

    @property
    def offsets(self) -> range:
        """Of all of them."""
        return range(self.first, self.last + 1)


@dataclass(frozen=True, slots=True)
class SharePartition:
    """A partition of a share group. Records below the start offset are done: accepted, or archived, which is not kept.

    The `start_offset` is None before the first delivery, and the `lag` while Kafka does not know it. `records` have no
    entry for what was never delivered. `archived` has the last that were given up, those below the start offset too; it
    is empty where another broker, or an earlier start, led the partition when they were.
    """

    topic: str
    partition: int
    start_offset: int | None
    lag: int | None
    records: tuple[ShareRecords, ...]
    archived: tuple[ArchivedRecords, ...] = ()


@dataclass(frozen=True, slots=True)
class ShareGroup:
    """A share group (KIP-932), as its coordinator and the leaders of its partitions know it."""

    group_id: str
    state: GroupState
    coordinator: int
    epoch: int
    members: tuple[Member, ...]
    partitions: tuple[SharePartition, ...]

    def acquired(self, topic: str, partition: int = 0) -> dict[int, str | None]:
        """The records that members hold: offset -> member id."""
        return {offset: one.member_id for one in self._of(topic, partition, "acquired") for offset in one.offsets}

    def archived(self, topic: str, partition: int = 0) -> list[int]:
        """The offsets above the start that were rejected, or delivered as often as the limit allows."""
        return [offset for one in self._of(topic, partition, "archived") for offset in one.offsets]

    def why_archived(self, topic: str, partition: int = 0) -> dict[int, ArchiveReason]:
        """Of the last records that were given up, also of those below the start: offset -> reason.

        "rejected", "delivery_limit", "below_start" (deleted from the log) or "no_record".
        """
        of_partition = [one for one in self.partitions if (one.topic, one.partition) == (topic, partition)]
        return {offset: row.reason for one in of_partition for row in one.archived for offset in row.offsets}

    def delivery_counts(self, topic: str, partition: int = 0) -> dict[int, int]:
        """How often the records from the start offset on were delivered: offset -> count."""
        return {offset: one.delivery_count for one in self._of(topic, partition, None) for offset in one.offsets}

    def is_done(self, topic: str, offset: int, partition: int = 0) -> bool:
        """Whether a record is accepted, or below the start offset: it is never delivered again."""
        for one in self.partitions:
            if (one.topic, one.partition) == (topic, partition) and one.start_offset is not None:
                accepted = self._of(topic, partition, "acknowledged")
                return offset < one.start_offset or any(offset in run.offsets for run in accepted)
        return False

    def _of(self, topic: str, partition: int, state: ShareRecordState | None) -> list[ShareRecords]:
        return [
            run
            for one in self.partitions
            if (one.topic, one.partition) == (topic, partition)
            for run in one.records
            if state in (None, run.state)
        ]


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id; the `state` has Kafka's names: Empty, Ongoing, PrepareCommit ..."""

    transactional_id: str
    state: TransactionState
    coordinator: int | None
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """A request that arrived. `request` and `response` are decoded, with Kafka's field names in snake_case.

    `api` is its key where it has no name here. `request` is None where it is too large to be kept whole, `response`
    where there is none (yet). `outcome` is "answered", "pending", or what became of it. `errors` has the names of the
    error codes in the response; `faults` the ids of the faults that acted on it. Sizes are in bytes.
    """

    id: int
    time_ms: int
    broker: int
    api: ApiName | int
    version: int
    client_id: str | None
    correlation_id: int
    outcome: str
    duration_ms: float | None
    size: int
    response_size: int
    errors: tuple[ErrorName, ...] = ()
    faults: tuple[int, ...] = ()
    request: Mapping[str, Any] | None = None
    response: Mapping[str, Any] | None = None
    is_cut: bool = False
    connection: Mapping[str, Any] = field(default_factory=dict)
    """Its `id` in logs, `client_host`, `client_port`, `client_software_name`, `principal`, `listener` ..."""


@dataclass(frozen=True, slots=True)
class ClientMetric:
    """One series that a client pushed, as it named it: `org.apache.kafka.producer.record.queue.time.avg`.

    `kind` is "gauge", "count" (the sum of all that was pushed), "histogram" or "summary". The `value` of the last two
    is their count; `at` are the bounds of a histogram or the quantiles of a summary, `values` what is there.
    """

    name: str
    labels: Mapping[str, str]
    kind: Literal["gauge", "count", "histogram", "summary"]
    value: float
    unit: str = ""
    description: str = ""
    sum: float | None = None
    at: tuple[float, ...] = ()
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ClientMetrics:
    """What an instance of a client has pushed (KIP-714) to a broker: the last value of each series.

    `instance_id` is as Kafka writes it. `resource` is what the client says of itself: `group_id`, `client_rack` ...
    `is_terminated`: this was its last push. `left_out`: values of the last push that were not kept.
    """

    instance_id: str
    client_id: str
    software_name: str
    software_version: str
    address: str
    broker: int
    resource: Mapping[str, str]
    since_ms: int
    pushed_ms: int
    pushes: int
    is_terminated: bool
    left_out: int
    series: tuple[ClientMetric, ...]

    def find(self, name: str, **labels: str) -> list[ClientMetric]:
        """Its series of this name that have these labels, and maybe others."""
        return [one for one in self.series if one.name == name and labels.items() <= one.labels.items()]

    def value(self, name: str, **labels: str) -> float:
        """The value of the series of this name with exactly these labels, or of the only one that has more.

        Raises AssertionError if there is no such series, or are several.
        """
        found = self.find(name, **labels)
        found = [one for one in found if one.labels == labels] or found
        if len(found) != 1:
            shown: list[Any] = [dict(one.labels) for one in found] or self._like(name)
            cause = f"{self.client_id} has pushed {len(found)} series {name} {labels or ''}".rstrip()
            raise AssertionError(f"{cause}, not one; there are: {shown}")
        return found[0].value

    def _like(self, name: str) -> list[str]:
        from difflib import get_close_matches

        names = sorted({one.name for one in self.series})
        return names if len(names) <= SHOWN_MAX else get_close_matches(name, names, SHOWN_MAX, 0)


def to_bytes(data: Any) -> bytes | None:
    """The bytes of their JSON: text, `{"base64": ...}` or null."""
    if data is None or isinstance(data, str):
        return None if data is None else data.encode()
    import base64

    return base64.b64decode(data["base64"])


def to_json(data: bytes | str | None) -> Any:
    """The reverse, for bytes or text."""
    if data is None or isinstance(data, str):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(data).decode()}


def topic_of(data: JsonObject) -> Topic:
    """A topic of its JSON."""
    partitions = tuple(
        Partition(**{**one, "replicas": tuple(one["replicas"]), "isr": tuple(one["isr"])}) for one in data["partitions"]
    )
    return Topic(data["name"], data["topic_id"], data["is_internal"], partitions, dict(data["config"]))


def record_of(data: JsonObject) -> Record:
    """A record of its JSON."""
    headers = tuple((name, to_bytes(value)) for name, value in data.get("headers", ()))
    return Record(**{**data, "key": to_bytes(data["key"]), "value": to_bytes(data["value"]), "headers": headers})


def group_of(data: JsonObject) -> Group:
    """A group of its JSON."""
    return Group(**{**data, "members": tuple(map(_member_of, data["members"]))})


def _member_of(data: JsonObject) -> Member:
    assignment = {topic: tuple(partitions) for topic, partitions in data["assignment"].items()}
    return Member(**{**data, "subscription": tuple(data["subscription"]), "assignment": assignment})


def share_group_of(data: JsonObject) -> ShareGroup:
    """A share group of its JSON."""
    partitions = tuple(
        SharePartition(
            **{
                **one,
                "records": tuple(ShareRecords(**run) for run in one["records"]),
                "archived": tuple(ArchivedRecords(**row) for row in one.get("archived", ())),
            }
        )
        for one in data["partitions"]
    )
    return ShareGroup(**{**data, "members": tuple(map(_member_of, data["members"])), "partitions": partitions})


def transaction_of(data: JsonObject) -> Transaction:
    """A transaction of its JSON."""
    partitions = tuple((topic, index) for topic, index in data["partitions"])
    return Transaction(**{**data, "partitions": partitions})


def client_metrics_of(data: JsonObject) -> ClientMetrics:
    """A client's metrics of their JSON."""
    return ClientMetrics(**{**data, "series": tuple(map(_client_metric_of, data["series"]))})


def _client_metric_of(data: JsonObject) -> ClientMetric:
    """Numbers that JSON has not are texts there."""
    numbers = {name: float(data[name]) for name in ("value", "sum") if name in data}
    lists = {name: tuple(map(float, data.get(name, ()))) for name in ("at", "values")}
    return ClientMetric(**{**data, **numbers, **lists})


def request_of(data: JsonObject) -> Request:
    """A request of its JSON."""
    own = {name: value for name, value in data.items() if name in Request.__dataclass_fields__}
    rest = {name: value for name, value in data.items() if name not in own} | {"id": own.pop("connection")}
    own |= {"errors": tuple(own.get("errors") or ()), "faults": tuple(own.get("faults") or ())}
    return Request(**{**own, "connection": rest})
