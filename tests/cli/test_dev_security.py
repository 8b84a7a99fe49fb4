"""`kpybroker dev --sasl` and `--tls`: its settings are usable, and its banner says what a client sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.lifecycle.authorizer import rules_of
from kpybroker.broker.security.stores import ListenerTls
from kpybroker.cli.dev_certificates import certificates
from kpybroker.cli.dev_security import DEFAULT_SASL, MECHANISMS, USERS, security_of, with_acls
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.authorizer import Principal


def test_without_it_nothing_changes() -> None:
    assert security_of(None) == ("PLAINTEXT", {}, None)


@pytest.mark.parametrize("sasl", MECHANISMS)
def test_the_settings_are_those_of_a_broker(sasl: str) -> None:
    security = security_of(sasl)
    config = BrokerConfig({**security.keys, "listeners": f"{security.protocol}://127.0.0.1:9092"})
    enabled = config.get_list("sasl.enabled.mechanisms")
    assert enabled[0] == MECHANISMS[sasl]
    assert config.get_str("sasl.mechanism.inter.broker.protocol") in enabled


@pytest.mark.parametrize("sasl", MECHANISMS)
def test_the_banner_has_settings_for_each_kind_of_client(sasl: str) -> None:
    show = security_of(sasl).show
    assert show is not None
    text = "\n".join(show("127.0.0.1:9092"))
    for word in ("kcat -L -b 127.0.0.1:9092", "'sasl.mechanisms': ", "sasl.jaas.config=", MECHANISMS[sasl]):
        assert word in text
    assert all(password in text for password in USERS.values())


def test_with_acls_admin_may_do_everything_and_the_banner_says_how_to_allow_more() -> None:
    security = with_acls(security_of(DEFAULT_SASL))
    config = BrokerConfig({**security.keys, "listeners": f"{security.protocol}://127.0.0.1:9092"})
    assert config.get_str("authorizer.class.name") == "kafka.security.authorizer.AclAuthorizer"
    assert rules_of(config).super_users == {Principal("User", "admin")}
    assert security.show is not None
    lines = list(security.show("127.0.0.1:9092"))
    assert lines[: len(lines) - 2] == list((security_of(DEFAULT_SASL).show or str)("127.0.0.1:9092"))
    assert "kpybroker acl create --allow-principal alice" in lines[-1]
    assert "-X sasl.username=admin" in lines[-1]


def test_certificates_stay_the_same_until_they_do_not_fit(tmp_path: Path) -> None:
    first = certificates(tmp_path / "tls", "localhost")
    before = [Path(file).read_bytes() for file in first]
    assert [Path(file).read_bytes() for file in certificates(tmp_path / "tls", "0.0.0.0")] == before
    assert [Path(file).read_bytes() for file in certificates(tmp_path / "tls", "other.example")] != before
    assert Path(first.broker).stat().st_mode & 0o77 == 0


@pytest.mark.parametrize("sasl", [None, *MECHANISMS])
def test_a_listener_serves_with_the_certificates(tmp_path: Path, sasl: str | None) -> None:
    security = security_of(sasl, certificates(tmp_path, "localhost"))
    assert security.protocol == ("SSL" if sasl is None else "SASL_SSL")
    config = BrokerConfig({**security.keys, "listeners": f"{security.protocol}://127.0.0.1:9092"})
    ListenerTls(config, security.protocol)
    assert security.show is not None
    text = "\n".join(security.show("127.0.0.1:9092"))
    for word in ("-X ssl.ca.location=", "'ssl.ca.location': ", "ssl.truststore.location=", security.protocol):
        assert word in text
