"""What the list of requests shows, and what not."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from kpybroker.control.requests.request_json import RECORDS_BYTES_MAX, message_json, records_json
from kpybroker.wire.compression import Codec
from kpybroker.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kpybroker.wire.records.batch import parse_header
from kpybroker.wire.records.builder import BatchFields, build_batch, rebuild_batch, varint

SECRET = "hunter2-hunter2"


@pytest.mark.parametrize(
    "name",
    [
        "ssl.keystore.password",
        "listener.name.secure.ssl.key.password",
        "listener.name.clients.scram-sha-512.sasl.jaas.config",
        "delegation.token.secret.key",
    ],
)
def test_a_password_that_is_set_is_hidden(name: str) -> None:
    entry = IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=SECRET)
    other = IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", config_operation=0, value="7")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=4, configs=[entry, other])
    shown = message_json(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert SECRET not in json.dumps(shown)
    assert [one["value"] for one in shown["resources"][0]["configs"]] == ["[hidden]", "7"]


def test_a_token_of_a_login_is_hidden() -> None:
    shown = message_json(SaslAuthenticateRequest(auth_bytes=SECRET.encode()), 2)
    assert shown == {"auth_bytes": "[hidden]"}


def zeros(count: int, header_count: int) -> bytes:
    """A batch whose few hundred bytes are `count` records, each with so many headers."""
    section = bytearray()
    for index in range(count):
        rest = b"\0\0" + varint(index) + b"\2k\2v" + varint(header_count) + b"\0\1" * header_count
        section += varint(len(rest)) + rest
    model = parse_header(build_batch([(b"k", b"v", 1)] * count, BatchFields(codec=Codec.ZSTD)))
    return bytes(rebuild_batch(model, section))


LARGE_VALUES = bytes(build_batch([(b"k", bytes(100_000), 1)], BatchFields(codec=Codec.ZSTD))) * 10


@pytest.mark.parametrize("records", [zeros(1, 100_000), LARGE_VALUES, zeros(100, 11)], ids=len)
def test_a_few_bytes_that_hold_very_much_are_not_shown(records: bytes) -> None:
    assert len(records) <= RECORDS_BYTES_MAX
    tracemalloc.start()
    try:
        shown = records_json(records)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(shown, dict)
    assert "MESSAGE_TOO_LARGE" in str(shown["error"])
    assert peak < 32 * 1024 * 1024


def test_headers_are_shown_as_they_are() -> None:
    shown = records_json(zeros(2, 3))
    assert isinstance(shown, dict)
    (batch,) = shown["batches"]
    assert [len(record["headers"]) for record in batch["records"]] == [3, 3]
