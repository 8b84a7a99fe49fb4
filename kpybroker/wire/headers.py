"""Request and response headers, written by hand: they are read before the body's API and version are known.

Traps: the client id has a two-byte length in every version, flexible ones too; ControlledShutdown 0 has none; the
header of an unknown API is read as far as the client id, so that a log line can name the client. The caller decides
which APIs and versions to reject. A frame's size is not part of the header.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kpybroker.wire.api import API_INFO, ApiInfo, ApiKey
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.primitives import Buffer, read_tagged_fields, unsigned_varint, write_tagged_fields
from kpybroker.wire.schema import TaggedFields

_KEY_VERSION_ID = struct.Struct(">hhi")
_CLIENT_ID_LENGTH = struct.Struct(">h")
_CORRELATION_ID = struct.Struct(">i")

MAX_HEADER_TAGS = 1000
"""Tagged fields a header may hold. Kafka defines none."""


class RequestHeader(NamedTuple):
    """`body_offset` is where the body starts in the frame. `api_key` is an int: it may be unknown to us."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_offset: int = 0
    unknown_tagged_fields: TaggedFields = ()


def request_header_version(api_key: int, api_version: int) -> int:
    """As ApiInfo.request_header_version; 1 for an unknown API."""
    known = _VERSIONS.get((api_key, api_version))
    if known is not None:
        return known
    info = _INFO_BY_KEY.get(api_key)
    return 1 if info is None else info.request_header_version(api_version)


_INFO_BY_KEY: dict[int, ApiInfo] = {int(key): info for key, info in API_INFO.items()}
_VERSIONS = {
    (key, version): info.request_header_version(version)
    for key, info in _INFO_BY_KEY.items()
    for version in range(info.valid_versions[0], info.valid_versions[1] + 1)
}


def parse_request_header(frame: Buffer) -> RequestHeader:
    """The header at the start of a frame (without its size). Raises ProtocolError."""
    try:
        api_key, api_version, correlation_id = _KEY_VERSION_ID.unpack_from(frame)
        version = _VERSIONS.get((api_key, api_version))
        if version is None:
            version = request_header_version(api_key, api_version)
        if version == 0:
            return RequestHeader(api_key, api_version, correlation_id, None, 8)
        (length,) = _CLIENT_ID_LENGTH.unpack_from(frame, 8)
        client_id, position = None, 10
        if length >= 0:
            position += length
            if position > len(frame):
                raise ProtocolError(f"the client id claims {length} bytes, {len(frame) - 10} are left")
            client_id = str(frame[10:position], "utf-8")
        tags: TaggedFields = ()
        if version == 2:
            count = frame[position]
            position += 1
            if count:
                tags, position, _ = read_tagged_fields(frame, position, len(frame), count, MAX_HEADER_TAGS)
        header = (api_key, api_version, correlation_id, client_id, position, tags)
        return tuple.__new__(RequestHeader, header)  # takes a third of its constructor's time
    except (IndexError, struct.error):
        raise ProtocolError("the request header is cut short") from None
    except UnicodeDecodeError:
        raise ProtocolError("the client id is not UTF-8") from None


def encode_request_header(header: RequestHeader) -> bytes:
    """The header's bytes, in the version that its API and API version require."""
    version = request_header_version(header.api_key, header.api_version)
    out = [_KEY_VERSION_ID.pack(header.api_key, header.api_version, header.correlation_id)]
    if version >= 1:
        client_id = None if header.client_id is None else header.client_id.encode()
        out.append(_CLIENT_ID_LENGTH.pack(-1 if client_id is None else len(client_id)))
        out.append(client_id or b"")
    if version >= 2:
        out.append(unsigned_varint(len(header.unknown_tagged_fields)))
        write_tagged_fields(out.append, header.unknown_tagged_fields)
    return b"".join(out)


def encode_response_header(api_key: ApiKey, api_version: int, correlation_id: int) -> bytes:
    """Four or five bytes: the correlation id, and an empty tagged section where the version has one."""
    flexible = API_INFO[api_key].response_header_version(api_version) == 1
    return _CORRELATION_ID.pack(correlation_id) + (b"\0" if flexible else b"")


def parse_response_header(frame: Buffer, api_key: ApiKey, api_version: int) -> tuple[int, int]:
    """(correlation id, where the body starts). Raises ProtocolError."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame, 0)
        position = 4
        if API_INFO[api_key].response_header_version(api_version) == 1:
            count = frame[position]
            _, position, _ = read_tagged_fields(frame, position + 1, len(frame), count, MAX_HEADER_TAGS)
        return correlation_id, position
    except (IndexError, struct.error):
        raise ProtocolError("the response header is cut short") from None
