"""The heartbeats of all members, from what passed the proxies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from compat_tests.faults.groups.history import Beat, BeatKind
from compat_tests.faults.history import Partition
from compat_tests.faults.proxy import Exchange
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode
from kpybroker.wire.headers import parse_request_header, parse_response_header

KINDS = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: BeatKind.CONSUMER,
    ApiKey.HEARTBEAT: BeatKind.CLASSIC,
    ApiKey.SYNC_GROUP: BeatKind.SYNC,
}
LISTENING = frozenset(int(key) for key in KINDS)


Names = Mapping[bytes, str]
"""Of topics, by their ids."""


def beats_of(exchanges: Iterable[Exchange], names: Names) -> dict[str, list[Beat]]:
    """By group, in the order of their responses."""
    found: dict[str, list[Beat]] = defaultdict(list)
    for exchange in exchanges:
        group, beat = _beat(exchange, names)
        found[group].append(beat)
    return found


def _beat(exchange: Exchange, names: Names) -> tuple[str, Beat]:
    frame = exchange.request[4:]
    header = parse_request_header(frame)
    key, version = ApiKey(header.api_key), header.api_version
    request: Any = decode(API_INFO[key].request_class(), frame[header.body_offset :], version)
    response: Any = None
    if exchange.response is not None:
        _, position = parse_response_header(exchange.response[4:], key, version)
        response = decode(API_INFO[key].response_class(), exchange.response[4 + position :], version)
    is_consumer = key is ApiKey.CONSUMER_GROUP_HEARTBEAT
    asked_epoch = request.member_epoch if is_consumer else request.generation_id
    beat = Beat(
        KINDS[key],
        header.client_id or "",
        int(exchange.broker),
        exchange.sent_ns,
        exchange.reported_ns,
        asked_epoch,
        response.member_epoch if is_consumer and response is not None else asked_epoch,
        None if response is None else response.error_code,
    )
    if is_consumer:
        assignment = None if response is None else response.assignment
        given = None if assignment is None else assignment.topic_partitions
        beat = beat._replace(owned=_partitions(request.topic_partitions, names), given=_partitions(given, names))
    return request.group_id, beat


def _partitions(topics: Iterable[Any] | None, names: Names) -> frozenset[Partition] | None:
    if topics is None:
        return None
    return frozenset((names[topic.topic_id], index) for topic in topics for index in topic.partitions)
