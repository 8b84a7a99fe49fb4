"""docs/CONFIGURATION.md and the sentences it is made of."""

from __future__ import annotations

from kpybroker.cli.run import EXIT_CODES
from kpybroker.config.docs import lookup as docs
from kpybroker.config.docs import page as document
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.topic import TOPIC_ROWS


def test_the_page_is_fresh() -> None:
    assert document.PLACE.read_text(encoding="utf-8") == document.page(), "run python -m kpybroker.config.docs.page"


def test_every_key_has_a_sentence() -> None:
    assert all(docs.broker_doc(name) for name in BROKER_KEYS)
    assert all(docs.topic_doc(row[0]) for row in TOPIC_ROWS)
    assert docs.broker_doc("no.such.key") is None
    assert docs.topic_doc("no.such.key") is None


def test_a_key_without_effect_says_so() -> None:
    assert "Without effect in kpybroker: " in (docs.broker_doc("num.io.threads") or "")
    assert "Without effect" not in (docs.broker_doc("num.partitions") or "")


def test_the_page_names_every_exit_code() -> None:
    page = document.page()
    for code, meaning in EXIT_CODES:
        assert f"| {code} | {meaning} |" in page
