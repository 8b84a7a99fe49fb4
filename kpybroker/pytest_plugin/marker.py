"""`@pytest.mark.kafka(partitions=3)`: how the topic of a test is created, and which group protocol the test is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kpybroker.testing.checking.calls import Kind

NAME: Final = "kafka"
TEXT: Final = (
    "kafka(partitions=1, config={...}, group_protocol=...): how `kafka_topic` of this test is created: its number of "
    "partitions and its Kafka keys; the only group protocol that the test is for"
)
OF_THE_TOPIC: Final = ("partitions", "config")


def given(item: pytest.Item) -> dict[str, Any]:
    """The arguments of the test's markers; of two of the same name that of the nearest marker. They are not checked."""
    found: dict[str, Any] = {}
    for mark in item.iter_markers(NAME):
        found = {**mark.kwargs, **found}
    return found


def check(item: pytest.Item) -> None:
    """Raises UsageError for a marker that cannot be meant as it is, or that does nothing."""
    if item.get_closest_marker(NAME) is None:
        return
    kinds = _kinds()
    for mark in item.iter_markers(NAME):
        _check(mark, kinds)
    own = [name for mark in item.own_markers if mark.name == NAME for name in mark.kwargs if name in OF_THE_TOPIC]
    if own and "kafka_topic" not in getattr(item, "fixturenames", ()):
        raise pytest.UsageError(f"pytest.mark.kafka({own[0]}=...) is for kafka_topic, which the test does not take")


def _kinds() -> Mapping[str, Kind]:
    from kpybroker.testing.checking import kinds

    return {
        "partitions": kinds.partitions,
        "config": kinds.optional(kinds.settings),
        "group_protocol": kinds.one_of("classic", "consumer"),
    }


def _check(mark: pytest.Mark, kinds: Mapping[str, Kind]) -> None:
    from kpybroker.testing.checking.calls import did_you_mean, shown

    if mark.args:
        cause = f"pytest.mark.kafka({shown(mark.args[0])}) has an argument without a name"
        raise pytest.UsageError(f"{cause}: give {', '.join(f'{name}=' for name in kinds)}")
    for name, value in mark.kwargs.items():
        if name not in kinds:
            raise pytest.UsageError(f"pytest.mark.kafka has no argument {name!r}: {did_you_mean(name, kinds)}")
        fix = kinds[name](value)
        if fix is not None:
            raise pytest.UsageError(f"pytest.mark.kafka({name}={shown(value)}): {fix}")
