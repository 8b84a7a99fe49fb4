"""`kpybroker.shortcuts`: which names it takes, and what they leave on."""

from __future__ import annotations

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.keys.own import FAST_PRODUCE, POLLER, SHORTCUTS, chosen_shortcuts
from kpybroker.config.values import ConfigError


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("all", SHORTCUTS),
        ("none", frozenset()),
        ("poller, fast-produce", {POLLER, FAST_PRODUCE}),
        ("all,poller", SHORTCUTS),
    ],
)
def test_a_value_leaves_on_what_it_names(value: str, left: frozenset[str]) -> None:
    config = BrokerConfig({"broker.id": "0", "kpybroker.shortcuts": value})
    assert chosen_shortcuts(config.get_list("kpybroker.shortcuts")) == left


def test_all_are_on_by_default_and_an_unknown_name_is_refused() -> None:
    assert chosen_shortcuts(BrokerConfig({"broker.id": "0"}).get_list("kpybroker.shortcuts")) == SHORTCUTS
    with pytest.raises(ConfigError, match=r"kpybroker\.shortcuts"):
        BrokerConfig({"broker.id": "0", "kpybroker.shortcuts": "magic"}).get_list("kpybroker.shortcuts")
