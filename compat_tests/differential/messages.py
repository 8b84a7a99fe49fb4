"""Requests from plain values, responses to plain values, with the broker's own codec and no client in between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode_from, encode
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_response_header
from kpybroker.wire.records.batch import BatchHeader, computed_crc, iter_batches
from kpybroker.wire.records.record import iter_records
from kpybroker.wire.schema import Message, struct_fields

CLIENT_ID = "differential"
# ApiVersions of a version the broker does not have gets a response of version 0 (KIP-511)
FALLBACK_VERSION = 0


def request_frame(api: ApiKey, version: int, correlation_id: int, fields: Mapping[str, Any]) -> bytes:
    """The whole frame without its size. Fields that `version` does not have are left out."""
    message_class = API_INFO[api].request_class()
    header = RequestHeader(int(api), version, correlation_id, CLIENT_ID)
    return encode_request_header(header) + encode(_build(message_class, message_class, version, fields), version)


def _build(message_class: type[Message], struct: type[Message], version: int, values: Mapping[str, Any]) -> Message:
    fields = {field.name: field for field in struct_fields(message_class, struct)}
    unknown = values.keys() - fields.keys()
    assert not unknown, f"{struct.__qualname__} has no {sorted(unknown)}; it has {sorted(fields)}"
    arguments = {}
    for name, value in values.items():
        field = fields[name]
        if not field.present(version):
            continue
        if field.struct is not None and value is not None:
            nested = field.struct
            if field.array:
                value = [_build(message_class, nested, version, inner) for inner in value]
            else:
                value = _build(message_class, nested, version, value)
        arguments[name] = value
    return struct(**arguments)


def plain_response(api: ApiKey, version: int, frame: bytes, correlation_id: int) -> dict[str, Any]:
    """The response as dicts and lists. What the codec does not account for appears under names of its own."""
    received_id, position = parse_response_header(frame, api, version)
    assert received_id == correlation_id, f"response to {received_id}, not to {correlation_id}"
    message_class = API_INFO[api].response_class()
    message, end = decode_from(message_class, frame, position, version, max_elements=1_000_000)
    plain = _plain(message_class, message, version)
    if end != len(frame):
        plain["bytes after the message"] = frame[end:].hex()
    return plain


def _plain(message_class: type[Message], message: Message, version: int) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for field in struct_fields(message_class, type(message)):
        if not field.present(version):
            continue
        value = getattr(message, field.name)
        if field.type_name == "records":
            value = plain_records(value)
        elif field.struct is not None and value is not None:
            if field.array:
                value = [_plain(message_class, inner, version) for inner in value]
            else:
                value = _plain(message_class, value, version)
        plain[field.name] = value
    if message.unknown_tagged_fields:
        plain["unknown tagged fields"] = message.unknown_tagged_fields
    return plain


def plain_records(records: Any) -> Any:
    """Every batch's header and records, and how many bytes of a cut-off one follow."""
    if records is None:
        return None
    buffer = bytes(records)
    batches: list[Any] = []
    end = 0
    for position, header in iter_batches(buffer):
        batch = dict(header._asdict())
        # offsets, times and ids are compared by themselves; what is left to know of the CRC is that it is right
        batch["crc"] = "right" if computed_crc(buffer, position, header) == header.crc else "wrong"
        if header.is_compressed:
            batch["batch_length"] = "of compressed bytes"  # two compressors make different ones of the same records
        batch["records"] = _plain_batch(buffer, position, header)
        batches.append(batch)
        end = position + header.size
    if end != len(buffer):
        batches.append({"cut-off bytes": len(buffer) - end})
    return batches


def _plain_batch(buffer: bytes, position: int, header: BatchHeader) -> Any:
    try:
        return [
            [record.offset, record.timestamp, record.key, record.value, list(record.headers)]
            for record in iter_records(buffer, header, position)
        ]
    except KafkaError as error:  # a broker may have stored what it did not look at
        return f"not to be read: {error.code.name}"
