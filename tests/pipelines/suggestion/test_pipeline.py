"""Options of `suggestion` that do not fit together, before Spark starts, and the store of its service."""

from __future__ import annotations

import json

import pytest

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.options import parse
from kpybroker.pipelines.suggestion.pipeline import SUGGESTION
from kpybroker.pipelines.suggestion.store import Store

COMMON = ["--bootstrap-servers", "a:1", "--input", "purchases", "--output", "topics:shop"]
STREAM = [*COMMON, "--checkpoint", "/tmp/c"]
WHOLE = [*COMMON, "--run", "whole"]


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ([*STREAM, "--model", "als"], "ALS is computed over a bounded set"),
        ([*STREAM, "--window", "10 days"], "--window is not a multiple of --slide"),
        ([*STREAM, "--value-format", "avro"], "Avro needs the schemas of its writers"),
        ([*STREAM, "--schema-registry", "http://a:1"], "--schema-registry is for Avro"),
        ([*WHOLE, "--value-format", "avro", "--schema-registry", "a:1"], "'a:1' is not the address of a registry"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(arguments: list[str], cause: str) -> None:
    with pytest.raises(PipelineError, match=cause) as refused:
        parse(SUGGESTION, arguments)
    assert refused.value.exit_code == 2


def test_what_is_given_is_what_runs() -> None:
    own = parse(SUGGESTION, [*WHOLE, "--model", "als", "--top", "3", "--rank", "7", "--shrink", "2"]).own
    assert (own.model, own.whole, own.factors.top, own.factors.rank) == ("als", True, 3, 7)
    assert (own.ranking.top, own.ranking.shrink) == (3, 2.0)
    changed = parse(SUGGESTION, [*STREAM, "--top", "3", "--least", "9"]).own
    assert SUGGESTION.kept(changed) == SUGGESTION.kept(parse(SUGGESTION, STREAM).own), "the state is the same"


def test_the_last_record_of_a_key_counts_and_one_without_a_value_removes_it() -> None:
    store = Store()
    first, second = (json.dumps({"product": "a", "suggestions": [n]}).encode() for n in (1, 2))
    for value in (first, second):
        store.apply("products", b"a", value)
    assert store.rows["product"] == {"a": second}
    store.apply("others", b"a", None)
    assert store.rows["product"] == {"a": second}, "another topic's"
    store.apply("products", b"a", None)
    store.apply("products", b"a", None)
    assert store.rows["product"] == {}


@pytest.mark.parametrize("value", [b"", b"[]", b"\xff", b'{"product": "a"}', b'{"product": "b", "suggestions": []}'])
def test_what_is_no_suggestion_is_left_out(value: bytes) -> None:
    store = Store()
    store.apply("products", b"a", value)
    assert (store.rows["product"], store.left_out) == ({}, 1)
