"""DescribeClientQuotas: what a filter selects, from the tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.handlers.security import describe_client_quotas
from kpybroker.core.authorizer import CLUSTER_NAME, Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from tests.support.brokers.configured_broker import call, configured_broker
from tests.support.brokers.fake_broker import Denying

Request = DescribeClientQuotasRequest
EXACT, DEFAULT, ANY = 0, 1, 2


def wanted(*components: tuple[str, int, str | None], strict: bool = False) -> Request:
    return Request(
        components=[
            Request.ComponentData(entity_type=kind, match_type=how, match=match) for kind, how, match in components
        ],
        strict=strict,
    )


def described(response: Any) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    assert response.error_code == 0
    return [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in response.entries
    ]


@pytest.mark.parametrize("version", [0, 1])
async def test_quotas_are_found_by_their_entity(tmp_path: Path, version: int) -> None:
    async with configured_broker(tmp_path) as broker:
        assert described(await call(broker, describe_client_quotas, wanted(), version)) == []
        write = broker.configs.write
        await write("users", "a%20b", {"producer_byte_rate": "1", "SCRAM-SHA-256": "salt=..."})
        await write("users", "only-credentials", {"SCRAM-SHA-256": "salt=..."})
        await write("users", "a%20b/clients/<default>", {"request_percentage": "2.5"})
        await write("clients", "c", {"consumer_byte_rate": "3"})
        await write("ips", "10.0.0.1", {"connection_creation_rate": "4"})
        user = ({"user": "a b"}, {"producer_byte_rate": 1.0})
        both = ({"user": "a b", "client-id": None}, {"request_percentage": 2.5})
        client = ({"client-id": "c"}, {"consumer_byte_rate": 3.0})
        address = ({"ip": "10.0.0.1"}, {"connection_creation_rate": 4.0})
        for filtered, expected in (
            (wanted(), [user, both, client, address]),
            (wanted(("user", EXACT, "a b")), [user, both]),
            (wanted(("user", EXACT, "a b"), strict=True), [user]),
            (wanted(("user", ANY, None), ("client-id", DEFAULT, None)), [both]),
            (wanted(("client-id", EXACT, "c")), [client]),
            (wanted(("ip", ANY, None)), [address]),
            (wanted(("ip", DEFAULT, None)), []),
        ):
            assert described(await call(broker, describe_client_quotas, filtered, version)) == expected


@pytest.mark.parametrize(
    ("components", "code", "message"),
    [
        ([("user", ANY, None)] * 2, ErrorCode.INVALID_REQUEST, "Duplicate user filter component entity type"),
        ([("client-id", ANY, None)] * 2, ErrorCode.INVALID_REQUEST, "Duplicate client filter component entity type"),
        ([("", ANY, None)], ErrorCode.INVALID_REQUEST, "Unexpected empty filter component entity type"),
        ([("planet", ANY, None)], ErrorCode.UNSUPPORTED_VERSION, "Custom entity type 'planet' not supported"),
        ([("user", 9, None)], ErrorCode.UNKNOWN_SERVER_ERROR, "Unexpected match type: 9"),
        ([("user", EXACT, None)], ErrorCode.UNKNOWN_SERVER_ERROR, None),
    ],
)
async def test_a_filter_that_there_is_not(
    tmp_path: Path, components: list[tuple[str, int, str | None]], code: ErrorCode, message: str | None
) -> None:
    async with configured_broker(tmp_path) as broker:
        response = await call(broker, describe_client_quotas, wanted(*components), 1)
        assert (response.error_code, response.error_message, response.entries) == (code, message, None)


async def test_who_may_not_describe_the_cluster_sees_nothing(tmp_path: Path) -> None:
    async with configured_broker(tmp_path) as broker:
        denying = Denying([(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)])
        response = await call(broker, describe_client_quotas, wanted(), 1, authorizer=denying)
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert response.entries is None
