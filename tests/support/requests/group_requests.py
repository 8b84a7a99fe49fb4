"""Requests to the group machine, for the tests of the coordinators."""

from __future__ import annotations

from typing import Any

import pytest

from kpybroker.broker.app import Broker
from kpybroker.core.group.values import (
    CommitOffsets,
    FetchOffsets,
    FetchOffsetsResult,
    Join,
    JoinResult,
    Sync,
    SyncResult,
)
from kpybroker.core.offsets.values import OffsetAndMetadata
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.brokers.fake_broker import FakeBroker

T0 = ("t", 0)


def commit(group_id: str = "g", offset: int = 1, producer_id: int = -1) -> CommitOffsets:
    value = OffsetAndMetadata(offset, -1, "", 0)
    return CommitOffsets(group_id, "", None, -1, {T0: value}, producer_id, 0)


def fetch(group_id: str = "g", require_stable: bool = False) -> FetchOffsets:
    return FetchOffsets(group_id, (T0,), require_stable)


def join(member_id: str = "", *, new_id: str = "c-1", session_ms: int = 6_000) -> Join:
    return Join("g", member_id, None, new_id, "c", "/h", 60_000, session_ms, "consumer", (("p", b""),), False, True, "")


async def committed(broker: FakeBroker, group_id: str = "g") -> int:
    result: FetchOffsetsResult = await broker.groups.ask(fetch(group_id))
    assert result.error is ErrorCode.NONE
    return result.offsets[T0].offset


async def stable_member(broker: FakeBroker | Broker) -> None:
    """c-1, alone in group g."""
    joined: JoinResult = await broker.groups.ask(join())
    synced: SyncResult = await broker.groups.ask(
        Sync("g", joined.generation_id, "c-1", None, None, None, {"c-1": b"x"})
    )
    assert synced == SyncResult(ErrorCode.NONE, "consumer", "p", b"x")


async def refusal(broker: FakeBroker, request: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        await broker.groups.ask(request)
    return caught.value.code
