"""AlterClientQuotas: each entity by itself, checked before it is written, applied before the response."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.handlers.security import alter_client_quotas
from kpybroker.core.authorizer import CLUSTER_NAME, Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from tests.support.brokers.configured_broker import call, configured_broker
from tests.support.brokers.fake_broker import Denying

Request = AlterClientQuotasRequest


def entry(entity: dict[str, str | None], **values: float | None) -> Request.EntryData:
    """None removes."""
    return Request.EntryData(
        entity=[Request.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[Request.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()],
    )


def outcomes(response: Any) -> list[tuple[int, str | None]]:
    return [(one.error_code, one.error_message) for one in response.entries]


@pytest.mark.parametrize("version", [0, 1])
async def test_a_change_applies_before_the_response(tmp_path: Path, version: int) -> None:
    async with configured_broker(tmp_path) as broker:
        request = Request(entries=[entry({"user": "u", "client-id": "c"}, producer_byte_rate=5, request_percentage=2)])
        assert outcomes(await call(broker, alter_client_quotas, request, version)) == [(0, None)]
        assert await broker.configs.read("users", "u/clients/c") == {
            "producer_byte_rate": "5",
            "request_percentage": "2.0",
        }
        assert broker.quotas is not None
        assert len(broker.quotas) == 2
        request = Request(entries=[entry({"user": "u", "client-id": "c"}, producer_byte_rate=None)])
        await call(broker, alter_client_quotas, request, version)
        assert await broker.configs.read("users", "u/clients/c") == {"request_percentage": "2.0"}


async def test_an_entity_that_is_refused_leaves_the_others_alone(tmp_path: Path) -> None:
    async with configured_broker(tmp_path) as broker:
        request = Request(
            entries=[
                entry({"user": "u"}, producer_byte_rate=1.5),
                entry({"client-id": "c"}, producer_byte_rate=1),
                entry({"ip": "no such host"}, connection_creation_rate=1),
                entry({"ip": "10.0.0.1"}, connection_creation_rate=-1),
            ]
        )
        response = await call(broker, alter_client_quotas, request, 1)
        assert outcomes(response) == [
            (ErrorCode.INVALID_REQUEST, "Configuration producer_byte_rate must be a LONG value"),
            (0, None),
            (ErrorCode.INVALID_REQUEST, "no%20such%20host is not a valid IP or resolvable host."),
            (ErrorCode.INVALID_REQUEST, "Configuration connection_creation_rate must be a INT value"),
        ]
        assert await broker.configs.entities("users") == []
        assert await broker.configs.entities("clients") == ["c"]
        assert await broker.configs.entities("ips") == []


async def test_validation_changes_nothing(tmp_path: Path) -> None:
    async with configured_broker(tmp_path) as broker:
        entries = [entry({"user": "u"}, producer_byte_rate=1), entry({"user": "v"}, no_such_key=1)]
        response = await call(broker, alter_client_quotas, Request(entries=entries, validate_only=True), 1)
        assert outcomes(response) == [(0, None), (ErrorCode.INVALID_REQUEST, "Invalid configuration key no_such_key")]
        assert await broker.configs.entities("users") == []
        assert broker.quotas is None


async def test_credentials_of_a_user_stay(tmp_path: Path) -> None:
    async with configured_broker(tmp_path) as broker:
        await broker.configs.write("users", "u", {"SCRAM-SHA-256": "salt=..."})
        await call(broker, alter_client_quotas, Request(entries=[entry({"user": "u"}, producer_byte_rate=1)]), 1)
        await call(broker, alter_client_quotas, Request(entries=[entry({"user": "u"}, producer_byte_rate=None)]), 1)
        assert await broker.configs.read("users", "u") == {"SCRAM-SHA-256": "salt=..."}


async def test_who_may_not_alter_the_cluster_changes_nothing(tmp_path: Path) -> None:
    async with configured_broker(tmp_path) as broker:
        denying = Denying([(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)])
        request = Request(entries=[entry({"user": "u"}, producer_byte_rate=1)])
        response = await call(broker, alter_client_quotas, request, 1, authorizer=denying)
        assert [code for code, _ in outcomes(response)] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
        assert await broker.configs.entities("users") == []
