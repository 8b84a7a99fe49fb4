"""What the tables of `changes` must be, from the generator's history, and the newest values of a topic by key."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any

from confluent_kafka import Message

Rows = dict[int, dict[str, Any]]


def typed(rows: Mapping[int, Mapping[str, Any]]) -> Rows:
    """With schemas: a day is a date."""
    return {
        key: {name: _day(value) if name == "day" else value for name, value in row.items()} for key, row in rows.items()
    }


def _day(value: int | None) -> date | None:
    return None if value is None else date(1970, 1, 1) + timedelta(days=value)


def texts(rows: Mapping[int, Mapping[str, Any]]) -> dict[int, dict[str, str | None]]:
    """Without schemas: all are texts."""
    return {key: {name: _text(value) for name, value in row.items()} for key, row in rows.items()}


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def newest(messages: Iterable[Message]) -> dict[str, dict[int, Any]]:
    """A compacted topic: by table and key the last value, without those that a tombstone has removed."""
    found: dict[str, dict[int, Any]] = {}
    for message in messages:
        key = json.loads(message.key())
        rows = found.setdefault(key["table"], {})
        if message.value() is None:
            rows.pop(key["key"]["id"], None)
        else:
            rows[key["key"]["id"]] = json.loads(message.value())
    return found
