"""ApiVersions, and requests that no client sends."""

from __future__ import annotations

import struct

from compat_tests.differential.messages import request_frame
from compat_tests.differential.script import Frame, Names, ask, script
from compat_tests.differential.steps import create
from kpybroker.wire.api import ApiKey

API_VERSIONS = ApiKey.API_VERSIONS


def header(api_key: int, version: int, rest: bytes = b"") -> Frame:
    """A frame with a header of version 1 and a body of any bytes."""
    content = struct.pack(">hhih", api_key, version, 7, -1) + rest
    return Frame(lambda _names: content, f"API {api_key} v{version} with body {rest.hex()}")


def changed(api: ApiKey, version: int, fields: dict[str, object], cut: int = 0, more: bytes = b"") -> Frame:
    """A right request with its last `cut` bytes missing, or bytes after it."""

    def content(_names: Names) -> bytes:
        whole = request_frame(api, version, 7, fields)
        return whole[: len(whole) - cut] + more

    return Frame(content, f"{api.name} v{version}, {cut} bytes short, then {more.hex()!r}")


SCRIPTS = [
    script(
        "api-versions",
        API_VERSIONS,
        "what is served, to clients of any name; to a later version the way down",
        ask(API_VERSIONS, client_software_name="differential", client_software_version="1.0"),
        ask(API_VERSIONS, client_software_name="", client_software_version=""),
        ask(API_VERSIONS, client_software_name="bad name!", client_software_version="1"),
        ask(API_VERSIONS, client_software_name="a", client_software_version="-1"),
    ),
    script(
        "api-versions-unknown",
        API_VERSIONS,
        "KIP-511: a version that is not there gets version 0 with the range",
        header(18, 5),
        header(18, 99),
        header(18, -1),
        ask(API_VERSIONS, v=3, client_software_name="differential", client_software_version="1.0"),
        versions=(0, 0),
    ),
    script(
        "frames",
        API_VERSIONS,
        "what ends a connection and what does not",
        header(3, 99),
        header(3, -1),
        header(99, 0),
        header(-1, 0),
        header(1000, 0),
        header(0, 12),
        header(1, 18),
        header(3, 1, b"\0\0\0\1"),
        header(3, 1, b"\x7f\xff\xff\xff"),
        header(3, 1, b"\0\0\0\1\xff\xff"),
        header(3, 1, b"\0\0\0\1\0\2\xff\xfe"),
        Frame(lambda _names: b"", "no bytes"),
        Frame(lambda _names: b"\0\3", "two bytes"),
        Frame(lambda _names: struct.pack(">hhi", 3, 1, 7), "no client id"),
        Frame(lambda _names: struct.pack(">hhih", 3, 1, 7, 100), "a client id cut short"),
        changed(ApiKey.METADATA, 12, {"topics": [{"name": "x"}]}, cut=1),
        changed(ApiKey.HEARTBEAT, 0, {"group_id": "g", "member_id": "m"}, more=b"\1\2\3"),
        changed(ApiKey.FIND_COORDINATOR, 0, {"key": "g"}, cut=1),
        changed(ApiKey.JOIN_GROUP, 5, {"group_id": "g"}, cut=2),
        create("{t}"),
        versions=(0, 0),
    ),
]
