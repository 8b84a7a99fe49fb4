"""Topics and offsets: `Known` has what Metadata said, and asks the leaders for offsets.

A leader that has moved is looked for again until the deadline of a request, as every client of Kafka does.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Final

from kpybroker.client.connect.errors import FIXES, CommandError, broker_error
from kpybroker.client.connect.wire import RETRY_S, WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest
from kpybroker.wire.messages.metadata import MetadataRequest

NO_NODE: Final = -1
ELSEWHERE: Final = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    )
)
"""Errors after which Metadata is asked again."""
ABSENT: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    )
)
"""Of topics that a list of all topics does not have."""

Place = tuple[str, int]


class Known:
    """What Metadata said, by topic. It is asked for all topics, or for those that are not known yet."""

    def __init__(self, wire: WireCluster) -> None:
        self._wire = wire
        self._topics: dict[str, Any] = {}
        self._leaders: dict[str, dict[int, int]] = {}
        self._is_complete = False

    def everything(self) -> Any:
        """Brokers and topics, as ``AdminClient.list_topics`` has them. Raises CommandError."""
        if not self._is_complete:
            self._ask(None)
            self._is_complete = True
        return SimpleNamespace(
            brokers=dict(self._wire.nodes),
            topics={name: _listed(topic) for name, topic in self._topics.items()},
            controller_id=self._wire.controller_id,
            cluster_id=self._wire.cluster_id,
        )

    def one(self, name: str) -> Any:
        """A topic of `everything`, or None. Raises CommandError."""
        topic = self._of([name]).get(name)
        return None if topic is None or topic.error_code in ABSENT else _listed(topic)

    def described(self, names: Iterable[str]) -> dict[str, Any]:
        """Each topic as ``AdminClient.describe_topics`` has it, or a CommandError."""
        return {name: self._described(topic) for name, topic in self._of(names).items()}

    def offsets(self, places: Mapping[Place, int], isolation_level: int) -> dict[Place, Any]:
        """The offset at each partition's timestamp, -1 for none; -1 and -2 are the end and the first. Or an error."""
        found: dict[Place, Any] = {}
        deadline = time.monotonic() + self._wire.timeout_s
        while True:
            missing = {place: at for place, at in places.items() if place not in found}
            found |= self._offsets(missing, isolation_level)
            again = [place for place, one in found.items() if isinstance(one, _Elsewhere)]
            if not again or time.monotonic() > deadline:
                return found
            for place in again:
                del found[place]
                self._topics.pop(place[0], None)
            time.sleep(RETRY_S)

    def _offsets(self, places: Mapping[Place, int], isolation_level: int) -> dict[Place, Any]:
        self._of({topic for topic, _ in places})
        found: dict[Place, Any] = {}
        by_leader: dict[int, dict[Place, int]] = {}
        for place, at in places.items():
            leader = self._leader(place)
            if isinstance(leader, CommandError):
                found[place] = leader
            else:
                by_leader.setdefault(leader, {})[place] = at
        for leader, of_leader in by_leader.items():
            try:
                found |= self._ask_leader(leader, of_leader, isolation_level)
            except CommandError as error:
                found |= dict.fromkeys(of_leader, error)
        return found

    def _ask_leader(self, leader: int, places: Mapping[Place, int], isolation_level: int) -> dict[Place, Any]:
        by_topic: dict[str, list[Any]] = {}
        for (topic, number), at in places.items():
            one = ListOffsetsRequest.ListOffsetsPartition(partition_index=number, timestamp=at)
            by_topic.setdefault(topic, []).append(one)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=parts) for topic, parts in by_topic.items()
            ],
        )
        response = self._wire.broker(leader).request(ApiKey.LIST_OFFSETS, request)
        return {
            (topic.name, one.partition_index): _offset(one) for topic in response.topics for one in topic.partitions
        }

    def leader(self, place: Place) -> int | CommandError:
        """The leader of a partition, or why there is none."""
        self._of([place[0]])
        return self._leader(place)

    def _leader(self, place: Place) -> int | CommandError:
        topic = self._topics[place[0]]
        error = broker_error(topic.error_code)
        if error is not None:
            return _Elsewhere(error.cause, error.fix) if topic.error_code in ELSEWHERE else error
        leader = self._leaders[place[0]].get(place[1])
        if leader is None:
            return CommandError("no topic has such a partition", FIXES["UNKNOWN_TOPIC_OR_PARTITION"])
        if leader == NO_NODE:
            return _Elsewhere(f"{place[0]}-{place[1]} has no leader (LEADER_NOT_AVAILABLE)")
        return leader

    def _of(self, names: Iterable[str]) -> dict[str, Any]:
        """What Metadata has of each name."""
        wanted = sorted(set(names))
        missing = [name for name in wanted if name not in self._topics]
        if missing:
            self._ask(missing)
        return {name: self._topics[name] for name in wanted if name in self._topics}

    def _ask(self, names: list[str] | None) -> None:
        """Ask Metadata; the brokers' addresses are then the newest too."""
        topics = None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        response = self._wire.any().request(ApiKey.METADATA, request)
        self._wire.know(response)
        for topic in response.topics:
            self._topics[topic.name] = topic
            self._leaders[topic.name] = {one.partition_index: one.leader_id for one in topic.partitions}

    def _described(self, topic: Any) -> Any:
        error = broker_error(topic.error_code)
        if error is not None:
            return error
        partitions = [
            SimpleNamespace(
                id=one.partition_index,
                leader=self._node(one.leader_id),
                replicas=[self._node(number) for number in one.replica_nodes],
                isr=[self._node(number) for number in one.isr_nodes],
            )
            for one in topic.partitions
        ]
        topic_id = base64.b64encode(bytes(topic.topic_id)).decode().rstrip("=")
        return SimpleNamespace(name=topic.name, topic_id=topic_id, is_internal=topic.is_internal, partitions=partitions)

    def _node(self, number: int) -> Any:
        return SimpleNamespace(id=number)


class _Elsewhere(CommandError):
    """The leader has moved, or is being elected."""


def _listed(topic: Any) -> Any:
    return SimpleNamespace(
        topic=topic.name,
        error=broker_error(topic.error_code),
        partitions={
            one.partition_index: SimpleNamespace(
                id=one.partition_index,
                leader=one.leader_id,
                replicas=list(one.replica_nodes),
                isrs=list(one.isr_nodes),
                error=broker_error(one.error_code),
            )
            for one in topic.partitions
        },
    )


def _offset(one: Any) -> Any:
    error = broker_error(one.error_code)
    if error is not None:
        return _Elsewhere(error.cause, error.fix) if one.error_code in ELSEWHERE else error
    offset = one.old_style_offsets[0] if one.old_style_offsets else one.offset
    return SimpleNamespace(offset=offset, timestamp=one.timestamp)
