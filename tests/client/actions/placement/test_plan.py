"""Where replicas go."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.client.actions.placement.plan import dump, load, parse_brokers, spread
from kpybroker.client.connect.errors import CommandError


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[tuple[str, int], list[int]], list[int], int | None]:
    """Partitions with as many replicas each, the brokers that they may go to, and perhaps another number."""
    factor = draw(st.integers(1, 3))
    brokers = draw(st.lists(st.integers(0, 9), min_size=3, max_size=6, unique=True))
    current = {
        ("t", number): draw(st.lists(st.integers(0, 9), min_size=factor, max_size=factor, unique=True))
        for number in range(draw(st.integers(1, 12)))
    }
    return current, brokers, draw(st.none() | st.integers(1, 3))


@given(cases())
def test_replicas_are_spread_and_what_may_stay_stays(
    case: tuple[dict[tuple[str, int], list[int]], list[int], int | None],
) -> None:
    current, brokers, replicas = case
    made = spread(current, brokers, replicas)
    assert made.keys() == current.keys()
    for place, chosen in made.items():
        count = replicas or len(current[place])
        assert len(set(chosen)) == len(chosen) == count
        assert set(chosen) <= set(brokers)
        staying = [one for one in current[place] if one in brokers]
        assert set(staying[:count]) <= set(chosen)
        if staying[:count] == current[place] and count == len(current[place]):
            assert chosen == current[place]
    assert spread(made, brokers, replicas) == made


def test_a_topic_that_moves_as_a_whole_is_balanced() -> None:
    current = {("t", number): [0, 1] for number in range(12)}
    made = spread(current, [2, 3, 4])
    assert set(Counter(one for found in made.values() for one in found).values()) == {8}
    assert set(Counter(found[0] for found in made.values()).values()) == {4}


def test_too_few_brokers_are_refused() -> None:
    with pytest.raises(CommandError, match="t-0 has 2 replicas, and 1 brokers are named"):
        spread({("t", 0): [0, 1]}, [2])


def test_a_plan_is_that_of_kafkas_tool() -> None:
    plan = {("a", 1): [2, 1], ("b", 0): [3]}
    assert load(dump(plan)) == plan
    kafkas = '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1],"log_dirs":["any"]}]}'
    assert load(kafkas) == {("a", 0): [1]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"partitions": []}',
        '{"partitions": {}}',
        '{"partitions": [1]}',
        '{"partitions": [{"topic": "a"}]}',
        '{"partitions": [{"topic": 1, "partition": 0, "replicas": [1]}]}',
        '{"partitions": [{"topic": "a", "partition": true, "replicas": [1]}]}',
        '{"partitions": [{"topic": "a", "partition": -1, "replicas": [1]}]}',
        '{"partitions": [{"topic": "a", "partition": 0, "replicas": []}]}',
        '{"partitions": [{"topic": "a", "partition": 0, "replicas": "1"}]}',
        '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1, 1]}]}',
        '{"partitions": [{"topic": "a", "partition": 0, "replicas": [99999999999]}]}',
        '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1]}, '
        '{"topic": "a", "partition": 0, "replicas": [2]}]}',
        "[" * 100_000,
    ],
)
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(CommandError) as caught:
        load(text)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("text", ["", "x", "1,", "1,x", "-1", "1,1", "9999999999", "1.5"])
def test_what_names_no_brokers_is_refused(text: str) -> None:
    with pytest.raises(CommandError):
        parse_brokers([text])
    assert parse_brokers(["1,2", "3"]) == [1, 2, 3]
