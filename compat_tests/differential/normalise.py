"""What may differ between two right responses, by rules: a value is replaced by what must be equal about it.

Ids are replaced by a name that distinguishes the first from the second, so the same id must appear in the same places
on both sides. Nothing is left out because it differs. Real differences from Kafka are in `allowed.py`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kpybroker.wire.api import ApiKey

Rule = Callable[["Normaliser", Any], Any]

NOW_TOLERANCE_MS = 10 * 60_000
INT64_MAX = 2**63 - 1
_LONG_NUMBER = re.compile(r"-?\d{13,19}")
_SHORT_UUID = re.compile(r"[\w-]{22}", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CLASSIC_ID = re.compile(r".+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Normaliser:
    """Of one broker, for one play of one script."""

    def __init__(self, port: int, data_dir: Path, *, is_next_to_4: bool = False) -> None:
        """Next to Kafka 4 it may differ which of Kafka's forms the ids have that brokers make for members."""
        self._any_member_id = is_next_to_4
        self._rules = RULES | RULES_NEXT_TO_4 if is_next_to_4 else RULES
        self._port = port
        self._data_dir = str(data_dir)
        self._tokens: dict[tuple[str, Any], str] = {}
        self._made: dict[str, str] = {}
        self._now_ms = time.time_ns() // 1_000_000

    def apply(self, api: ApiKey | None, response: dict[str, Any]) -> Any:
        return self._walk(api, "", response)

    def _walk(self, api: ApiKey | None, path: str, value: Any) -> Any:
        rule = self._rules.get((api, path)) or self._rules.get((None, path.rpartition(".")[2]))
        if rule is not None and value is not None:
            value = rule(self, value)
        if isinstance(value, dict):
            return {key: self._walk(api, f"{path}.{key}".lstrip("."), inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._walk(api, f"{path}[]", inner) for inner in value]
        return self.text(value) if isinstance(value, str) else value

    def text(self, text: str) -> str:
        text = text.replace(self._data_dir, "<data dir>").replace(f":{self._port}", ":<port>")
        for made, token in self._made.items():
            text = text.replace(made, token)
        text = _LONG_NUMBER.sub(lambda match: str(self._bound(int(match[0]))), text)
        return _UUID.sub(lambda match: self.token("uuid", match[0]), text)

    def token(self, kind: str, value: Any) -> str:
        count = sum(1 for known, _ in self._tokens if known == kind)
        return self._tokens.setdefault((kind, value), f"<{kind} {count + 1}>")

    def count(self, kind: str, value: Any) -> int:
        """How many ids of that kind the script met before this one."""
        known = [one for other, one in self._tokens if other == kind]
        return known.index(value) if value in known else len(known)

    def member(self, value: Any) -> Any:
        """An id that the coordinator made: a Uuid in Kafka's form; for classic members a name, a dash and a UUID."""
        is_made = _SHORT_UUID.fullmatch(value) or (self._any_member_id and _CLASSIC_ID.fullmatch(value))
        if is_made:
            self._made[value] = self.token("member id", value)
        return value

    def port(self, value: Any) -> Any:
        return "<port>" if value == self._port else value

    def now(self, value: Any) -> Any:
        recent = isinstance(value, int) and abs(value - self._now_ms) < NOW_TOLERANCE_MS
        return "<now>" if recent else value

    def _bound(self, value: int) -> Any:
        """A time, or one the largest possible number of milliseconds ago."""
        return "<now>" if self.now(value) == "<now>" or self.now(value + INT64_MAX) == "<now>" else value


def _token(kind: str, *plain: Any) -> Rule:
    return lambda normaliser, value: value if value in plain else normaliser.token(kind, value)


def _by_token(kind: str, field: str) -> Rule:
    """In the order in which the script met the ids."""
    return lambda normaliser, value: sorted(value, key=lambda element: normaliser.count(kind, element[field]))


def _topics(normaliser: Normaliser, value: Any) -> Any:
    """By name; those without one by the order in which the script met their ids, and by what is said of them."""

    def place(element: dict[str, Any]) -> tuple[str, int, str]:
        content = {
            field: sorted(map(repr, inner)) if isinstance(inner, list) else inner
            for field, inner in element.items()
            if field != "topic_id"
        }
        return element.get("name") or "", normaliser.count("topic id", element.get("topic_id")), repr(content)

    return sorted(value, key=place)


def _once(normaliser: Normaliser, value: Any) -> Any:
    """One entry for each topic, and of equal results for one partition one: requests may name both twice."""
    topics: dict[Any, dict[str, Any]] = {}
    for element in value:
        topic = topics.setdefault((element.get("name"), element.get("topic_id")), {**element, "partitions": []})
        for one in element["partitions"]:
            if one not in topic["partitions"]:
                topic["partitions"].append(one)
    return _topics(normaliser, list(topics.values()))


def _by_kind(_normaliser: Normaliser, value: Any) -> Any:
    """The kinds in their order, the names of each sorted. Version 0 has one kind, and does not say which."""
    kinds = list(dict.fromkeys(one.get("resource_type") for one in value))
    return sorted(value, key=lambda one: (kinds.index(one.get("resource_type")), one["resource_name"]))


def _positive(_normaliser: Normaliser, value: Any) -> Any:
    return "<positive>" if value > 0 else value


def _known(_normaliser: Normaliser, value: Any) -> Any:
    """An epoch of something that has other histories on two brokers; below 0 it is none."""
    return "<known>" if value >= 0 else value


def _sorted_by(*fields: str) -> Rule:
    return lambda _normaliser, value: sorted(value, key=lambda element: tuple(element[field] for field in fields))


def _ascending(_normaliser: Normaliser, value: Any) -> Any:
    return sorted(value)


def _members(normaliser: Normaliser, value: Any) -> Any:
    """Ids are random, so members come in the order in which the script met them."""
    named = [{**member, "member_id": normaliser.text(member["member_id"])} for member in value]
    return sorted(named, key=lambda member: member["member_id"])


def _keyed_by(field: str) -> Rule:
    """A dict instead of a list, so that one element more shifts nothing; a list with a key twice stays one."""

    def keyed(_normaliser: Normaliser, value: Any) -> Any:
        found = {str(element[field]): element for element in value}
        return found if len(found) == len(value) else sorted(value, key=lambda element: str(element[field]))

    return keyed


NOT_KAFKAS = ("kpybroker.", "kafka.graphite.")
"""Keys of our own, and those of a well-known reporter that Kafka does not ship."""


def _configs(normaliser: Normaliser, value: Any) -> Any:
    """By name, and the order in which they came, without those that Kafka lacks."""
    keyed = _keyed_by("name")(normaliser, value)
    if isinstance(keyed, dict):
        keyed["order"] = [name for name in (config["name"] for config in value) if not name.startswith(NOT_KAFKAS)]
    return keyed


def _quotas(_normaliser: Normaliser, value: Any) -> Any:
    """By entity: a map has no order, and neither have the values of each."""
    keyed = {}
    for entry in value:
        parts = sorted(entry["entity"], key=lambda part: str(part["entity_type"]))
        values = {one["key"]: one["value"] for one in entry.get("values", ())}
        name = ", ".join(f"{part['entity_type']} {part['entity_name']!r}" for part in parts)
        keyed[name] = {**entry, "entity": parts, "values": values}
    return keyed if len(keyed) == len(value) else value


KINDS_OF_TASKS = ("active", "standby", "warmup")

# (API, path) or (None, name of the field in any response)
RULES: dict[tuple[ApiKey | None, str], Rule] = {
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "entries"): _quotas,
    (ApiKey.ALTER_CLIENT_QUOTAS, "entries"): _quotas,
    # random at creation
    (None, "topic_id"): _token("topic id", bytes(16)),
    (None, "cluster_id"): _token("cluster id", ""),
    (None, "session_id"): _token("session id", 0),
    # counted by the broker: depends on what ran before
    (None, "producer_id"): _token("producer id", -1),
    (None, "port"): Normaliser.port,
    # the clock
    (ApiKey.PRODUCE, "responses[].partition_responses[].log_append_time_ms"): Normaliser.now,
    (ApiKey.FETCH, "responses[].partitions[].records[].max_timestamp"): Normaliser.now,
    (ApiKey.FETCH, "responses[].partitions[].records[].base_timestamp"): Normaliser.now,
    (ApiKey.FETCH, "responses[].partitions[].records[].records[][]"): Normaliser.now,
    (ApiKey.LIST_OFFSETS, "topics[].partitions[].timestamp"): Normaliser.now,
    (ApiKey.DESCRIBE_TRANSACTIONS, "transaction_states[].transaction_start_time_ms"): Normaliser.now,
    (ApiKey.DESCRIBE_PRODUCERS, "topics[].partitions[].active_producers[].last_timestamp"): Normaliser.now,
    # of one disk, that changes between the two
    (ApiKey.DESCRIBE_LOG_DIRS, "results[].usable_bytes"): _positive,
    # in the order of Java's and Scala's hash maps
    (ApiKey.API_VERSIONS, "api_keys"): _keyed_by("api_key"),
    (ApiKey.CREATE_TOPICS, "topics[].configs"): _configs,
    (ApiKey.DESCRIBE_CONFIGS, "results[].configs"): _configs,
    (ApiKey.LIST_CONFIG_RESOURCES, "config_resources"): _sorted_by("resource_name"),
    (ApiKey.METADATA, "topics"): _sorted_by("name"),
    (ApiKey.METADATA, "topics[].partitions"): _sorted_by("partition_index"),
    (ApiKey.DESCRIBE_LOG_DIRS, "results[].topics"): _sorted_by("name"),
    (ApiKey.DESCRIBE_LOG_DIRS, "results[].topics[].partitions"): _sorted_by("partition_index"),
    (ApiKey.DELETE_RECORDS, "topics"): _sorted_by("name"),
    (ApiKey.DELETE_RECORDS, "topics[].partitions"): _sorted_by("partition_index"),
    (ApiKey.OFFSET_COMMIT, "topics"): _topics,
    (ApiKey.OFFSET_COMMIT, "topics[].partitions"): _sorted_by("partition_index"),
    (ApiKey.OFFSET_FETCH, "topics"): _sorted_by("name"),
    (ApiKey.OFFSET_FETCH, "topics[].partitions"): _sorted_by("partition_index"),
    (ApiKey.OFFSET_FETCH, "groups[].topics"): _topics,
    (ApiKey.OFFSET_FETCH, "groups[].topics[].partitions"): _sorted_by("partition_index"),
    (ApiKey.LIST_GROUPS, "groups"): _sorted_by("group_id"),
    (ApiKey.DELETE_GROUPS, "results"): _sorted_by("group_id"),
    (ApiKey.JOIN_GROUP, "members"): _members,
    (ApiKey.DESCRIBE_GROUPS, "groups[].members"): _members,
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, "member_id"): Normaliser.member,
    (ApiKey.JOIN_GROUP, "member_id"): Normaliser.member,
    (ApiKey.CONSUMER_GROUP_DESCRIBE, "groups"): _sorted_by("group_id"),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, "assignment.topic_partitions"): _by_token("topic id", "topic_id"),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, "assignment.topic_partitions[].partitions"): _ascending,
    (ApiKey.CONSUMER_GROUP_DESCRIBE, "groups[].members"): _members,
    (ApiKey.CONSUMER_GROUP_DESCRIBE, "groups[].members[].subscribed_topic_names"): _ascending,
    (ApiKey.CONSUMER_GROUP_DESCRIBE, "groups[].members[].assignment.topic_partitions"): _sorted_by("topic_name"),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, "groups[].members[].assignment.topic_partitions[].partitions"): _ascending,
    (ApiKey.CONSUMER_GROUP_DESCRIBE, "groups[].members[].target_assignment.topic_partitions"): _sorted_by("topic_name"),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, "groups[].members[].target_assignment.topic_partitions[].partitions"): _ascending,
    (ApiKey.SHARE_GROUP_HEARTBEAT, "assignment.topic_partitions"): _by_token("topic id", "topic_id"),
    (ApiKey.SHARE_GROUP_HEARTBEAT, "assignment.topic_partitions[].partitions"): _ascending,
    (ApiKey.SHARE_GROUP_DESCRIBE, "groups"): _sorted_by("group_id"),
    (ApiKey.SHARE_GROUP_DESCRIBE, "groups[].members"): _sorted_by("member_id"),
    (ApiKey.SHARE_GROUP_DESCRIBE, "groups[].members[].subscribed_topic_names"): _ascending,
    (ApiKey.SHARE_GROUP_DESCRIBE, "groups[].members[].assignment.topic_partitions"): _sorted_by("topic_name"),
    (ApiKey.SHARE_GROUP_DESCRIBE, "groups[].members[].assignment.topic_partitions[].partitions"): _ascending,
    **{
        (ApiKey.STREAMS_GROUP_HEARTBEAT, f"{kind}_tasks{rest}"): rule
        for kind in KINDS_OF_TASKS
        for rest, rule in (("", _sorted_by("subtopology_id")), ("[].partitions", _ascending))
    },
    **{
        (ApiKey.STREAMS_GROUP_DESCRIBE, f"groups[].members[].{of}assignment.{kind}_tasks{rest}"): rule
        for of in ("", "target_")
        for kind in KINDS_OF_TASKS
        for rest, rule in (("", _sorted_by("subtopology_id")), ("[].partitions", _ascending))
    },
    (ApiKey.STREAMS_GROUP_DESCRIBE, "groups"): _sorted_by("group_id"),
    (ApiKey.STREAMS_GROUP_DESCRIBE, "groups[].members"): _sorted_by("member_id"),
    (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "groups"): _sorted_by("group_id"),
    (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "groups[].topics"): _sorted_by("topic_name"),
    (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "groups[].topics[].partitions"): _sorted_by("partition_index"),
    (ApiKey.ALTER_SHARE_GROUP_OFFSETS, "responses"): _sorted_by("topic_name"),
    (ApiKey.ALTER_SHARE_GROUP_OFFSETS, "responses[].partitions"): _sorted_by("partition_index"),
    (ApiKey.DELETE_SHARE_GROUP_OFFSETS, "responses"): _sorted_by("topic_name"),
    (ApiKey.SHARE_FETCH, "responses[].partitions"): _sorted_by("partition_index"),
    (ApiKey.SHARE_ACKNOWLEDGE, "responses[].partitions"): _sorted_by("partition_index"),
    (ApiKey.API_VERSIONS, "finalized_features_epoch"): _known,
    (ApiKey.PRODUCE, "responses"): _topics,
    (ApiKey.PRODUCE, "responses[].partition_responses"): _sorted_by("index"),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "results_by_transaction"): _sorted_by("transactional_id"),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "results_by_transaction[].topic_results"): _sorted_by("name"),
    (
        ApiKey.ADD_PARTITIONS_TO_TXN,
        "results_by_transaction[].topic_results[].results_by_partition",
    ): _sorted_by("partition_index"),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "results_by_topic_v3_and_below"): _sorted_by("name"),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "results_by_topic_v3_and_below[].results_by_partition"): _sorted_by(
        "partition_index"
    ),
    (ApiKey.TXN_OFFSET_COMMIT, "topics"): _sorted_by("name"),
    (ApiKey.TXN_OFFSET_COMMIT, "topics[].partitions"): _sorted_by("partition_index"),
    (ApiKey.WRITE_TXN_MARKERS, "markers[].topics"): _sorted_by("name"),
    (ApiKey.WRITE_TXN_MARKERS, "markers[].topics[].partitions"): _sorted_by("partition_index"),
    (ApiKey.DESCRIBE_TRANSACTIONS, "transaction_states[].topics"): _sorted_by("topic"),
    (ApiKey.DESCRIBE_TRANSACTIONS, "transaction_states[].topics[].partitions"): _ascending,
    (ApiKey.LIST_TRANSACTIONS, "transaction_states"): _sorted_by("transactional_id"),
    (ApiKey.DESCRIBE_PRODUCERS, "topics[].partitions[].active_producers"): _sorted_by("producer_id"),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, "responses"): _sorted_by("name"),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, "responses[].partitions"): _sorted_by("partition_index"),
    (ApiKey.ELECT_LEADERS, "replica_election_results"): _sorted_by("topic"),
    (ApiKey.ELECT_LEADERS, "replica_election_results[].partition_result"): _sorted_by("partition_id"),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, "results"): _sorted_by("topic_name"),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, "results[].partitions"): _sorted_by("partition_index"),
}

# hash maps of Kafka 4, and requests that name something twice
RULES_NEXT_TO_4: dict[tuple[ApiKey | None, str], Rule] = {
    (ApiKey.METADATA, "topics"): _topics,
    (ApiKey.LIST_OFFSETS, "topics"): _once,
    (ApiKey.LIST_OFFSETS, "topics[].partitions"): _sorted_by("partition_index"),
    (ApiKey.OFFSET_COMMIT, "topics"): _once,
    (ApiKey.OFFSET_FETCH, "groups[].topics"): _once,
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, "responses"): _once,
    (ApiKey.LIST_CONFIG_RESOURCES, "config_resources"): _by_kind,
}
