"""Bytes in JSON: a string if they are UTF-8 text, else `{"base64": "..."}`; null stays null."""

from __future__ import annotations

from typing import Any

from kpybroker.control.errors import ControlError


def to_json(data: bytes | memoryview | None) -> Any:
    """The JSON of some bytes."""
    if data is None:
        return None
    data = bytes(data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(data).decode()}


def from_json(value: Any, what: str) -> bytes | None:
    """The reverse. `what` names the value in the ControlError that any other JSON raises."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and set(value) == {"base64"} and isinstance(value["base64"], str):
        import base64
        import binascii

        try:
            return base64.b64decode(value["base64"], validate=True)
        except binascii.Error as error:
            raise ControlError(f"{what} is not base64: {error}", "encode it as RFC 4648 says, with padding") from error
    raise ControlError(f"{what} is no string", 'give a string, null, or {"base64": "..."} for bytes that are no text')
