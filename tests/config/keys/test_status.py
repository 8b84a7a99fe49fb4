"""What the tables say of a key is true: one that is honoured is used, and every code has its sentence."""

from __future__ import annotations

import re
from pathlib import Path

import kpybroker
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.status import HONOURED, REASONS
from kpybroker.config.keys.topic import TOPIC_ROWS
from kpybroker.config.topic import field_name

TABLES = re.compile(r"(keys_|docs_|topic_keys|definition|status|dynamic)")
SOURCES = {
    path: path.read_text(encoding="utf-8")
    for path in Path(kpybroker.__file__).parent.rglob("*.py")
    if not TABLES.match(path.name)
}


def test_every_code_has_its_sentence() -> None:
    assert {key.status for key in BROKER_KEYS.values()} | {row[6] for row in TOPIC_ROWS} <= REASONS.keys()


def test_an_honoured_broker_key_is_read_somewhere() -> None:
    text = "\n".join(SOURCES.values())
    topic_defaults = {synonym for row in TOPIC_ROWS for synonym in row[5]}
    honoured = {name for name, key in BROKER_KEYS.items() if key.status == HONOURED}
    assert [name for name in sorted(honoured - topic_defaults) if f'"{name}"' not in text] == []


def test_an_honoured_topic_key_is_read_somewhere() -> None:
    text = "\n".join(source for path, source in SOURCES.items() if path.name not in ("topic.py", "topic_defaults.py"))
    by_other_name = {
        "cleanup.policy",  # `.compact`
        "message.timestamp.difference.max.ms",  # before and after
        "unclean.leader.election.enable",  # the controller reads it from the znode
    }
    honoured = {row[0] for row in TOPIC_ROWS if row[6] == HONOURED} - by_other_name
    assert [name for name in sorted(honoured) if not re.search(rf"\b{field_name(name)}\b", text)] == []
