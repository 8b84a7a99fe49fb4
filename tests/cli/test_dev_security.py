"""`kpybroker dev --sasl`: its settings are usable, and its banner says what a client sets."""

from __future__ import annotations

import pytest

from kpybroker.cli.dev_security import MECHANISMS, USERS, security_of
from kpybroker.config.broker import BrokerConfig


def test_without_it_nothing_changes() -> None:
    assert security_of(None) == ("PLAINTEXT", {}, None)


@pytest.mark.parametrize("sasl", MECHANISMS)
def test_the_settings_are_those_of_a_broker(sasl: str) -> None:
    security = security_of(sasl)
    config = BrokerConfig({**security.keys, "listeners": f"{security.protocol}://127.0.0.1:9092"})
    assert config.get_list("sasl.enabled.mechanisms") == (MECHANISMS[sasl],)


@pytest.mark.parametrize("sasl", MECHANISMS)
def test_the_banner_has_settings_for_each_kind_of_client(sasl: str) -> None:
    show = security_of(sasl).show
    assert show is not None
    text = "\n".join(show("127.0.0.1:9092"))
    for word in ("kcat -L -b 127.0.0.1:9092", "'sasl.mechanisms': ", "sasl.jaas.config=", MECHANISMS[sasl]):
        assert word in text
    assert all(password in text for password in USERS.values())
