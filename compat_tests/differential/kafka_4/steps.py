"""Steps of scripts about consumer groups (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from compat_tests.differential import grouped, script
from compat_tests.differential.grouped import G
from compat_tests.differential.script import Ask, Reference, Step, ask
from compat_tests.differential.steps import create
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import encode
from kpybroker.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kpybroker.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

HEARTBEAT = ApiKey.CONSUMER_GROUP_HEARTBEAT
DESCRIBE = ApiKey.CONSUMER_GROUP_DESCRIBE

next_to_4 = partial(script.script, reference=Reference.KAFKA_4_3)
"""A script whose reference is Kafka 4.3.1."""

Owned = Mapping[str, Sequence[int]]
"""Partitions by the name of what is bound to a topic's id."""


def topic(name: str = "{t}", partitions: int = 4, *, id_as: str = "id", probe: str = "") -> list[Step]:
    """A topic that the group coordinator knows; its id is bound."""
    return [
        create(name, partitions, v=4, compared=False),
        ask(
            ApiKey.METADATA,
            v=12,
            topics=[{"name": name, "topic_id": bytes(16)}],
            bind={id_as: "topics.0.topic_id"},
            until={"topics.0.error_code": 0},
        ),
        joins(
            "probe",
            name,
            group=f"{name}-probe{probe}",
            v=1,
            until={"assignment.topic_partitions.0.partitions.0": 0},
            compared=False,
        ),
        leaves("probe", group=f"{name}-probe{probe}", compared=False),
    ]


def beat(member: str = "a", epoch: Any = 1, owned: Owned | None = None, *, group: str = G, **options: Any) -> Ask:
    """A heartbeat that says nothing but what it is given."""
    if owned is not None:
        options["topic_partitions"] = [
            {"topic_id": f"{{{name}}}", "partitions": list(indexes)} for name, indexes in owned.items()
        ]
    return ask(HEARTBEAT, group_id=group, member_id=member, member_epoch=epoch, **options)


def joins(member: str, *topics: str, timeout: int = 60_000, **options: Any) -> Ask:
    """The first heartbeat of a member that names its topics."""
    names = {} if "subscribed_topic_regex" in options else {"subscribed_topic_names": list(topics)}
    fields: dict[str, Any] = {"owned": {}, "rebalance_timeout_ms": timeout, **names, **options}
    return beat(member, 0, **fields)


def full(member: str, epoch: Any, *topics: str, owned: Owned | None = None, **options: Any) -> Ask:
    """All that there is to say, as a client does after an error."""
    fields: dict[str, Any] = {"subscribed_topic_names": list(topics), "rebalance_timeout_ms": 60_000, **options}
    return beat(member, epoch, {} if owned is None else owned, **fields)


def leaves(member: str = "a", epoch: Any = -1, **options: Any) -> Ask:
    return beat(member, epoch, **options)


def reaches(member: str, epoch: int, wanted: int, **options: Any) -> Ask:
    """Heartbeats until the member is in the wanted epoch; the last one is compared."""
    return beat(member, epoch, until={"member_epoch": wanted}, **options)


def view(*groups: str, **options: Any) -> Ask:
    return ask(DESCRIBE, **{"v": 1, **options}, group_ids=list(groups or [G]))


def seen(state: str, **options: Any) -> Ask:
    """Describe the group once it is in a state."""
    return view(until={"groups.0.group_state": state}, **options)


def listed(states: Sequence[str] = (), types: Sequence[str] = (), **options: Any) -> Ask:
    only = {"groups": f"group_id={G}"}
    return ask(ApiKey.LIST_GROUPS, states_filter=list(states), types_filter=list(types), only=only, **options)


def delete(*groups: str) -> Ask:
    return ask(ApiKey.DELETE_GROUPS, v=2, groups_names=list(groups or [G]))


# --- classic members


class Subscription:
    """The bytes that a classic consumer joins with; topics may hold names of the script."""

    def __init__(
        self, *topics: str, version: int = 3, owned: Mapping[str, Sequence[int]] | None = None, **fields: Any
    ) -> None:
        self._topics, self._version, self._owned, self._fields = topics, version, owned or {}, fields

    def build(self, names: script.Names) -> bytes:
        message = ConsumerProtocolSubscription(
            topics=[script.fill_in(name, names) for name in self._topics],
            owned_partitions=[
                ConsumerProtocolSubscription.TopicPartition(topic=script.fill_in(name, names), partitions=list(indexes))
                for name, indexes in self._owned.items()
            ],
            **self._fields,
        )
        return self._version.to_bytes(2, "big") + encode(message, self._version)


class Assigned:
    """The bytes that the leader of a classic group assigns."""

    def __init__(self, topics: Mapping[str, Sequence[int]], version: int = 3, user_data: bytes | None = None) -> None:
        """`topics`: partitions by what follows the script's own topic in their names."""
        self._version, self._user_data, self._topics = version, user_data, topics

    def build(self, names: script.Names) -> bytes:
        message = ConsumerProtocolAssignment(
            assigned_partitions=[
                ConsumerProtocolAssignment.TopicPartition(
                    topic=script.fill_in("{t}" + suffix, names), partitions=list(indexes)
                )
                for suffix, indexes in self._topics.items()
            ],
            user_data=self._user_data,
        )
        return self._version.to_bytes(2, "big") + encode(message, self._version)


def protocol(*topics: str, name: str = "range", **fields: Any) -> dict[str, Any]:
    return {"name": name, "metadata": Subscription(*(topics or ("{t}",)), **fields)}


def classic_joins(member: str = "", *protocols: dict[str, Any], **options: Any) -> Ask:
    return grouped.join(member, *(protocols or (protocol(),)), **{"v": 9, **options})


def classic_syncs(member: str, generation: Any, *assigned: tuple[str, Any], **options: Any) -> Ask:
    return grouped.sync(member, generation, *assigned, **{"v": 5, **options})


def classic_beats(member: str, generation: Any, **options: Any) -> Ask:
    return grouped.beat(member, generation, **{"v": 4, **options})


def a_classic_group(*partitions: int, member: str = "m", **options: Any) -> list[Step]:
    """A stable group of one member (its id is bound to `member`) in generation 1."""
    return [
        classic_joins("", bind={member: "member_id"}, **options),
        classic_joins(f"{{{member}}}", **options),
        classic_syncs(f"{{{member}}}", 1, (f"{{{member}}}", Assigned({"": partitions or (0, 1, 2, 3)}))),
    ]
