"""The keys of brokers for development, by what is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.lifecycle.authorizer import rules_of
from kpybroker.broker.security.stores import ListenerTls
from kpybroker.config.broker import BrokerConfig
from kpybroker.control.development.certificates import certificates
from kpybroker.control.development.security import (
    MECHANISMS,
    NoCertificates,
    SecurityOptions,
    broker_keys,
    tls_directory,
    tls_files,
)
from kpybroker.core.authorizer import Principal


def config_of(wanted: SecurityOptions, directory: Path) -> BrokerConfig:
    keys = broker_keys(wanted, certificates(directory, "localhost") if wanted.tls else None)
    return BrokerConfig({**keys, "listeners": f"{wanted.protocol}://127.0.0.1:9092"})


def test_without_it_nothing_changes() -> None:
    assert SecurityOptions().complete() == SecurityOptions()
    assert SecurityOptions().protocol == "PLAINTEXT"
    assert broker_keys(SecurityOptions()) == {}


@pytest.mark.parametrize("sasl", MECHANISMS)
def test_the_brokers_log_in_by_a_mechanism_that_is_enabled(sasl: str, tmp_path: Path) -> None:
    config = config_of(SecurityOptions(sasl=sasl), tmp_path)
    enabled = config.get_list("sasl.enabled.mechanisms")
    assert enabled[0] == MECHANISMS[sasl]
    assert config.get_str("sasl.mechanism.inter.broker.protocol") in enabled


def test_with_acls_admin_may_do_everything(tmp_path: Path) -> None:
    config = config_of(SecurityOptions(acl=True).complete(), tmp_path)
    assert config.get_str("authorizer.class.name") == "kafka.security.authorizer.AclAuthorizer"
    assert rules_of(config).super_users == {Principal("User", "admin")}
    assert config.get_list("sasl.enabled.mechanisms") == ("SCRAM-SHA-256",)


@pytest.mark.parametrize("sasl", [None, *MECHANISMS])
def test_a_listener_serves_with_the_certificates(tmp_path: Path, sasl: str | None) -> None:
    wanted = SecurityOptions(tls=True, sasl=sasl)
    assert wanted.protocol == ("SSL" if sasl is None else "SASL_SSL")
    ListenerTls(config_of(wanted, tmp_path), wanted.protocol)


def test_certificates_live_as_long_as_the_data() -> None:
    assert tls_directory("/data/one", None) == Path("/data/one-tls")
    assert tls_directory("/tmp/x/data", "/tmp/x") == Path("/tmp/x/tls")


def test_a_directory_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NoCertificates, match="cannot be used") as caught:
        tls_files(tmp_path / "file" / "tls", "localhost")
    assert not caught.value.is_missing
    assert caught.value.fix.endswith("or choose another data directory")
