"""The banner of `kpybroker dev --sasl`, `--tls` and `--acl` says what a client sets."""

from __future__ import annotations

import pytest

from kpybroker.cli.dev_security import client_lines
from kpybroker.cli.options import DevOptions
from kpybroker.control.development.certificates import TlsFiles
from kpybroker.control.development.security import MECHANISMS, USERS, SecurityOptions

AT = "127.0.0.1:9092"
FILES = TlsFiles("/ca", "/broker", "/client")


@pytest.mark.parametrize("sasl", MECHANISMS)
def test_the_banner_has_settings_for_each_kind_of_client(sasl: str) -> None:
    text = "\n".join(client_lines(AT, SecurityOptions(sasl=sasl), None))
    for word in (f"kcat -L -b {AT}", "'sasl.mechanisms': ", "sasl.jaas.config=", MECHANISMS[sasl]):
        assert word in text
    assert all(password in text for password in USERS.values())


@pytest.mark.parametrize("sasl", [None, *MECHANISMS])
def test_with_certificates_it_says_what_to_trust(sasl: str | None) -> None:
    text = "\n".join(client_lines(AT, SecurityOptions(tls=True, sasl=sasl), FILES))
    for word in ("-X ssl.ca.location=/ca", "'ssl.ca.location': '/ca'", "ssl.truststore.location=/ca"):
        assert word in text
    assert ("SASL_SSL" in text) is (sasl is not None)
    assert ("-X ssl.key.location=/client" in text) is (sasl is None)


@pytest.mark.parametrize("sasl", MECHANISMS)
def test_with_acls_it_says_how_to_allow_more(sasl: str) -> None:
    without, wanted = SecurityOptions(sasl=sasl), SecurityOptions(sasl=sasl, acl=True)
    lines = client_lines(AT, wanted, None)
    assert lines[:-2] == client_lines(AT, without, None)
    assert "kpybroker acl create --allow-principal alice" in lines[-1]
    assert f"-X sasl.mechanisms={MECHANISMS[sasl]}" in lines[-1]
    assert ("-X sasl.username=admin" if sasl != "oauthbearer" else "principal=admin") in lines[-1]


def test_acls_alone_come_with_logins() -> None:
    assert DevOptions(0, "127.0.0.1", acl=True).security == SecurityOptions(sasl="scram", acl=True)
    assert DevOptions(0, "127.0.0.1", tls=True).security.protocol == "SSL"
