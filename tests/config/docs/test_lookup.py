"""The sentences on the keys."""

from __future__ import annotations

from kpybroker.config.docs.lookup import broker_doc, topic_doc
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.topic import TOPIC_ROWS


def test_every_key_has_a_sentence() -> None:
    assert all(broker_doc(name) for name in BROKER_KEYS)
    assert all(topic_doc(row[0]) for row in TOPIC_ROWS)
    assert broker_doc("no.such.key") is None
    assert topic_doc("no.such.key") is None


def test_a_key_without_effect_says_so() -> None:
    assert "Without effect in kpybroker: " in (broker_doc("num.io.threads") or "")
    assert "Without effect" not in (broker_doc("num.partitions") or "")
