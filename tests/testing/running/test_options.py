"""The keywords of `Broker` and `Cluster`, and of `assert_records`: what editors, `help()` and the code itself know."""

from __future__ import annotations

import inspect

import pytest

from kpybroker.testing import Broker, Brokers, Cluster
from kpybroker.testing.asserting import Compared, Comparison
from kpybroker.testing.running.options import BrokerKeywords, BrokerOptions


@pytest.mark.parametrize(("keywords", "options"), [(BrokerKeywords, BrokerOptions), (Comparison, Compared)])
def test_what_a_type_checker_accepts_is_what_there_is_and_nothing_else(keywords: type, options: type) -> None:
    named = {name: kind.__forward_arg__ for name, kind in keywords.__annotations__.items()}
    assert named == options.__annotations__


@pytest.mark.parametrize(("made", "own"), [(Broker, []), (Cluster, ["brokers"]), (Brokers, ["brokers"])])
def test_help_shows_each_keyword_with_its_default(made: type, own: list[str]) -> None:
    found = inspect.signature(made).parameters
    wanted = inspect.signature(BrokerOptions).parameters
    assert list(found) == [*own, *wanted]
    assert {name: found[name].default for name in wanted} == {name: one.default for name, one in wanted.items()}
    assert all(found[name].kind is inspect.Parameter.KEYWORD_ONLY for name in wanted)


def test_help_shows_what_records_are_compared_with() -> None:
    found = inspect.signature(Broker.assert_records)
    assert list(found.parameters)[1:] == ["topic", "values", "keys", "count", "partition", "in_any_order", "committed"]


def test_a_class_of_ones_own_shows_its_own_arguments() -> None:
    class Mine(Broker):
        def __init__(self, size: int) -> None:
            super().__init__(partitions=size)

    assert list(inspect.signature(Mine).parameters) == ["size"]


def test_an_unknown_keyword_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'topcs'"):
        Broker(topcs=["t"])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'any_order'"):
        Broker.assert_records(Broker(), "t", any_order=True)  # type: ignore[call-arg]
