"""Keys that give one another a value."""

from __future__ import annotations

import pytest

from kpybroker.config.keys.synonyms import base_key, broker_synonyms


@pytest.mark.parametrize(
    ("name", "synonyms"),
    [
        ("log.retention.hours", ("log.retention.ms", "log.retention.minutes", "log.retention.hours")),
        ("log.roll.ms", ("log.roll.ms", "log.roll.hours")),
        ("log.flush.interval.ms", ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")),
        ("log.flush.scheduler.interval.ms", ("log.flush.scheduler.interval.ms",)),
        ("listener.name.x.ssl.keystore.type", ("listener.name.x.ssl.keystore.type", "ssl.keystore.type")),
        ("listener.name.x.plain.sasl.jaas.config", ("listener.name.x.plain.sasl.jaas.config", "sasl.jaas.config")),
        ("broker.id", ("broker.id",)),
    ],
)
def test_synonyms_are_ordered_most_specific_first(name: str, synonyms: tuple[str, ...]) -> None:
    assert broker_synonyms(name) == synonyms


def test_a_listeners_key_does_not_hide_the_plain_one() -> None:
    name = "listener.name.x.ssl.keystore.type"
    assert broker_synonyms(name, match_listener_override=False) == (name,)


def test_the_plain_key_of_a_listeners_key() -> None:
    assert base_key("listener.name.x.max.connections") == "max.connections"
    assert base_key("max.connections") == "max.connections"
