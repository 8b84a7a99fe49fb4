"""Bytes as JSON and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.control.bytes_json import from_json, to_json
from kpybroker.control.errors import ControlError
from kpybroker.testing import look


@given(st.none() | st.binary() | st.text().map(str.encode))
def test_any_bytes_come_back(data: bytes | None) -> None:
    assert from_json(to_json(data), "the value") == data
    assert look.to_bytes(to_json(data)) == data  # the other end of the channel
    assert from_json(look.to_json(data), "the value") == data


def test_text_is_readable() -> None:
    assert to_json("é".encode()) == "é"
    assert to_json(memoryview(b"a")) == "a"
    assert to_json(b"\xff") == {"base64": "/w=="}


@pytest.mark.parametrize("value", [1, [], {}, {"base64": 1}, {"base64": "x", "more": ""}, {"base64": "!"}, True])
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(ControlError, match="the value is no"):
        from_json(value, "the value")
