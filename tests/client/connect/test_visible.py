"""Text of strangers for people's terminals."""

from __future__ import annotations

import json

import pytest

from kpybroker.client.connect.visible import CONTROL, is_text, visible, visible_bytes, visible_json, visible_lines
from tests.support.requests import odd


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ключ \U0001f600", "plain ключ \U0001f600"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\r", "a\\x0ab\\x0d"),
        ("\x9b31m\u2028\u202e\ufeff", "\\x9b31m\\u2028\\u202e\\ufeff"),
        ("\udcff\udcfe", "\\xff\\xfe"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_a_terminal_obeys_is_written_as_its_number(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("data", [data for data in odd.BYTES if data])
def test_no_bytes_reach_a_terminal(data: bytes) -> None:
    assert not CONTROL.search(visible_bytes(data))
    kept = visible_lines(data).decode()
    assert not CONTROL.search(kept.replace("\n", ""))
    assert kept.count("\n") == data.count(b"\n")


def test_json_stays_the_same_value() -> None:
    value = {"a\u2028": ["\x9b", "\u202e", "ü", {"b": 1}]}
    text = visible_json(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(text) == value
    assert "ü" in text
    assert not CONTROL.search(text.replace("\n", ""))


def test_what_can_be_sent() -> None:
    assert is_text("ü\U0001f600\x1b")
    assert not is_text("a\udcff")
    assert not is_text("\ud800")
