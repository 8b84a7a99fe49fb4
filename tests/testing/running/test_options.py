"""The keywords of `Broker` and `Cluster`, and of `assert_records`: what editors, `help()` and the code itself know."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

import pytest

from kpybroker.testing import Broker, Brokers, Cluster, UsageError
from kpybroker.testing.asserting import COMPARISON, Compared, Comparison
from kpybroker.testing.checking.calls import Kind
from kpybroker.testing.running.options import OPTIONS, BrokerKeywords, BrokerOptions


@pytest.mark.parametrize(
    ("keywords", "options", "kinds"),
    [(BrokerKeywords, BrokerOptions, OPTIONS), (Comparison, Compared, COMPARISON)],
)
def test_what_a_type_checker_accepts_is_what_there_is_and_nothing_else(
    keywords: type, options: type, kinds: Mapping[str, Kind]
) -> None:
    named = {name: kind.__forward_arg__ for name, kind in keywords.__annotations__.items()}
    assert named == options.__annotations__
    assert named.keys() == kinds.keys()


@pytest.mark.parametrize(("made", "own"), [(Broker, []), (Cluster, ["brokers"]), (Brokers, ["brokers"])])
def test_help_shows_each_keyword_with_its_default(made: type, own: list[str]) -> None:
    found = inspect.signature(made).parameters
    wanted = inspect.signature(BrokerOptions).parameters
    assert list(found) == [*own, *wanted]
    assert {name: found[name].default for name in wanted} == {name: one.default for name, one in wanted.items()}
    assert all(found[name].kind is inspect.Parameter.KEYWORD_ONLY for name in wanted)


def test_help_shows_what_records_are_compared_with() -> None:
    found = inspect.signature(Broker.assert_records)
    assert list(found.parameters)[1:] == [
        "topic",
        "values",
        "keys",
        "count",
        "partition",
        "in_any_order",
        "isolation",
        "committed",
    ]


def test_a_class_of_ones_own_shows_its_own_arguments() -> None:
    class Mine(Broker):
        def __init__(self, size: int) -> None:
            super().__init__(partitions=size)

    assert list(inspect.signature(Mine).parameters) == ["size"]


def test_an_unknown_keyword_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"Broker\(\) has no argument 'topcs'\nfix: did you mean 'topics'"):
        Broker(topcs=["t"])  # type: ignore[call-arg]
    with pytest.raises(UsageError, match=r"has no argument 'any_order'\nfix: did you mean 'in_any_order'"):
        Broker.assert_records(Broker(), "t", any_order=True)  # type: ignore[call-arg]
