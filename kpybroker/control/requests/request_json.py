"""Requests and responses as JSON, by their schema: field names are those of `wire.messages`.

Bytes are text if they are UTF-8, else `{"base64": ...}`; UUIDs are as Kafka prints them. Record batches are decoded up
to `RECORDS_BYTES_MAX`; of larger ones, and of what is not here, only the size is given. Secrets are `[hidden]`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Final

from kpybroker.broker.requests.context import ConnectionInfo
from kpybroker.broker.requests.log.message_walk import JSON, Style, message_in
from kpybroker.config.keys.registry import PASSWORDS
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.headers import RequestHeader
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import HEADER_SIZE_UP_TO_MAGIC, iter_batches
from kpybroker.wire.records.default_record import RECORD_BYTES_MIN
from kpybroker.wire.records.record import Record, iter_records
from kpybroker.wire.schema import Message, struct_fields

RECORDS_BYTES_MAX = 16 * 1024
UNCOMPRESSED_BYTES_MAX = 256 * 1024
"""Of one batch, and of what is shown of all of them."""
HEADERS_MAX = 1_000
"""Headers of a batch that are shown."""


def head_json(broker_id: int, header: RequestHeader, connection: ConnectionInfo) -> dict[str, JSON]:
    """Where a request is from and what it is, without its body."""
    known = header.api_key in API_INFO
    return {
        "broker": broker_id,
        "api": API_INFO[ApiKey(header.api_key)].name if known else header.api_key,
        "version": header.api_version,
        "correlation_id": header.correlation_id,
        "client_id": header.client_id,
        "client_software_name": connection.client_software_name,
        "client_software_version": connection.client_software_version,
        "principal": str(connection.principal),
        "listener": connection.listener_name,
        "client_host": connection.client_host,
        "client_port": connection.client_port,
        "connection": connection.connection_id,
    }


def message_json(message: Message, version: int) -> dict[str, JSON]:
    """The fields that a version of a message has."""
    return message_in(STYLE, message, version)


def _is_password(message_class: type[Message], name: str) -> bool:
    """Whether a setting of this name, perhaps one of a listener and a mechanism, is a password."""
    return any(name == one or name.endswith(f".{one}") for one in PASSWORDS)


def bytes_json(data: Buffer | None) -> JSON:
    """Some bytes, or null."""
    if data is None:
        return None
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def records_json(data: Buffer) -> JSON:
    """The batches in a `records` field."""
    size = len(data)
    if size > RECORDS_BYTES_MAX or not any(data[:HEADER_SIZE_UP_TO_MAGIC]):  # zeros are records that are not here
        return {"bytes": size}
    try:
        return {"bytes": size, "batches": list(_batches(memoryview(data)))}
    except KafkaError as error:
        return {"bytes": size, "error": str(error)}


STYLE: Final = Style(lambda field, _: field.name, bytes_json, records_json, _is_password)


def _batches(data: memoryview) -> Iterator[JSON]:
    left = UNCOMPRESSED_BYTES_MAX
    for position, header in iter_batches(data):
        shown: list[JSON] = []
        for record in iter_records(data, header, position, max_bytes=UNCOMPRESSED_BYTES_MAX, headers_max=HEADERS_MAX):
            left -= RECORD_BYTES_MIN + len(record.key or b"") + len(record.value or b"")
            if left < 0:
                raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "Too many records to show")
            shown.append(_record(record))
        yield {
            "base_offset": header.base_offset,
            "magic": header.magic,
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "base_sequence": header.base_sequence,
            "is_transactional": header.is_transactional,
            "is_control": header.is_control,
            "records": shown,
        }


def _record(record: Record) -> JSON:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": bytes_json(record.key),
        "value": bytes_json(record.value),
        "headers": [[_header_name(name), bytes_json(value)] for name, value in record.headers],
    }


def error_names(response: Message, version: int) -> list[str]:
    """The errors in a response, each once, in order."""
    return list(dict.fromkeys(_errors_in(type(response), response, version)))


def _errors_in(message_class: type[Message], node: Message, version: int) -> Iterator[str]:
    inner = None if type(node) is message_class else type(node)
    for field in struct_fields(message_class, inner):
        if not field.present(version):
            continue
        value = getattr(node, field.name)
        if field.name.endswith("error_code") and isinstance(value, int):
            if value:
                yield _error_name(value)
        elif field.struct is not None and value is not None:
            for one in value if field.array else [value]:
                yield from _errors_in(message_class, one, version)


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def _header_name(name: str) -> str:
    """With bytes that are not UTF-8 made visible: JSON has no way to write them."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
