"""Request and response headers, and their traps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.headers import (
    RequestHeader,
    encode_request_header,
    encode_response_header,
    parse_request_header,
    parse_response_header,
)

KEYS_AND_VERSIONS = [
    (info.key, version)
    for info in API_INFO.values()
    for version in range(info.valid_versions[0], info.valid_versions[1] + 1)
]


@given(st.sampled_from(KEYS_AND_VERSIONS), st.integers(-(2**31), 2**31 - 1), st.none() | st.text(max_size=40))
def test_request_headers_round_trip(which: tuple[ApiKey, int], correlation_id: int, client_id: str | None) -> None:
    key, version = which
    if API_INFO[key].request_header_version(version) == 0:
        client_id = None
    encoded = encode_request_header(RequestHeader(key, version, correlation_id, client_id))
    for frame in (encoded + b"body", memoryview(bytearray(encoded + b"body"))):
        header = parse_request_header(frame)
        assert header == RequestHeader(key, version, correlation_id, client_id, len(encoded))


@given(st.sampled_from(KEYS_AND_VERSIONS), st.integers(-(2**31), 2**31 - 1))
def test_response_headers_round_trip(which: tuple[ApiKey, int], correlation_id: int) -> None:
    encoded = encode_response_header(*which, correlation_id)
    assert parse_response_header(encoded + b"body", *which) == (correlation_id, len(encoded))


def test_flexible_request_header_keeps_a_client_id_with_a_two_byte_length() -> None:
    frame = bytes.fromhex("00120003000000070003") + b"cli" + b"\0"
    assert parse_request_header(frame) == RequestHeader(18, 3, 7, "cli", len(frame))


def test_controlled_shutdown_0_has_no_client_id() -> None:
    frame = bytes.fromhex("0007000000000007ffff")
    assert parse_request_header(frame) == RequestHeader(7, 0, 7, None, 8)


def test_responses_to_api_versions_have_header_version_0_in_every_version() -> None:
    for version in range(5):
        assert encode_response_header(ApiKey.API_VERSIONS, version, 1) == b"\0\0\0\1"
    assert encode_response_header(ApiKey.METADATA, 9, 1) == b"\0\0\0\1\0"
    assert encode_response_header(ApiKey.METADATA, 8, 1) == b"\0\0\0\1"


def test_an_unknown_api_version_is_read_by_the_rules_of_the_newest() -> None:
    """A newer client's ApiVersions must get a response, so its header must be understood."""
    frame = encode_request_header(RequestHeader(18, 3, 9, "new"))
    frame = frame[:2] + (99).to_bytes(2, "big") + frame[4:]
    assert parse_request_header(frame) == RequestHeader(18, 99, 9, "new", len(frame))


def test_an_unknown_api_is_read_as_far_as_its_client_id() -> None:
    frame = bytes.fromhex("03e80005000000070003") + b"cli?"
    assert parse_request_header(frame) == RequestHeader(1000, 5, 7, "cli", 13)


def test_tags_in_the_header_are_kept() -> None:
    header = RequestHeader(18, 3, 7, "", unknown_tagged_fields=((4, b"four"), (9, b"")))
    assert parse_request_header(encode_request_header(header)).unknown_tagged_fields == header.unknown_tagged_fields


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "0012000300000007",
        "001200030000000700",
        "00120003000000070005616263",
        "0012000300000007000361626300"[:-2],
        "001200030000000700016100"[:-4] + "ff00",
        "00120003000000070001ff00",
        "001200030000000700016102",
        "0012000300000007000161ffffffff07",
        "0012000300000007000161" + "e907" + "0000" * 1001,
    ],
)
def test_broken_headers_raise_protocol_error(frame: str) -> None:
    with pytest.raises(ProtocolError):
        parse_request_header(bytes.fromhex(frame))
    with pytest.raises(ProtocolError):
        parse_request_header(bytearray.fromhex(frame))


def test_broken_response_headers_raise_protocol_error() -> None:
    for frame in (b"", b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1\5"):
        with pytest.raises(ProtocolError):
            parse_response_header(frame, ApiKey.METADATA, 12)
