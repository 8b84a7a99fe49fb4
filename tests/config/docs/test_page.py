"""The generated configuration page, and the sentences on the keys."""

from __future__ import annotations

from kpybroker.cli.exit_codes import EXIT_CODES
from kpybroker.config.docs.lookup import broker_doc, topic_doc
from kpybroker.config.docs.page import PLACE, page
from kpybroker.config.dynamic import FIXED_AT_START
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.topic import TOPIC_ROWS


def test_the_page_is_up_to_date() -> None:
    assert PLACE.read_text(encoding="utf-8") == page(), "run python -m kpybroker.config.docs.page"


def test_every_key_has_a_sentence() -> None:
    assert all(broker_doc(name) for name in BROKER_KEYS)
    assert all(topic_doc(row[0]) for row in TOPIC_ROWS)
    assert broker_doc("no.such.key") is None
    assert topic_doc("no.such.key") is None


def test_a_key_without_effect_says_so() -> None:
    assert "Without effect in kpybroker: " in (broker_doc("num.io.threads") or "")
    assert "Without effect" not in (broker_doc("num.partitions") or "")


def test_the_page_names_every_exit_code() -> None:
    for code, meaning in EXIT_CODES:
        assert f"| {code} | {meaning} |" in page()


def test_the_page_says_that_a_key_fixed_at_start_does_not_change() -> None:
    rows = {
        line.split("|")[1].strip(): line.split("|")[4].strip() for line in page().split("\n") if line.startswith("| `")
    }
    assert {rows[f"`{name}`"] for name in FIXED_AT_START} == {"no"}
    assert rows["`num.replica.fetchers`"] == "cluster-wide"


def test_no_line_outside_the_tables_is_too_long() -> None:
    assert [line for line in page().split("\n") if len(line) > 120 and not line.startswith("|")] == []
