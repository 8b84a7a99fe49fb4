"""What the banner of a configured broker says of clients."""

from __future__ import annotations

import pytest

from kpybroker.cli.secured_clients import lines
from kpybroker.config.broker import BrokerConfig

AT = "127.0.0.1:9093"


def text_for(listener: str, **keys: str) -> str:
    named = {key.replace("__", "-").replace("_", "."): value for key, value in keys.items()}
    between = {"security.inter.broker.protocol": listener}
    if "sasl.enabled.mechanisms" in named:
        between["sasl.mechanism.inter.broker.protocol"] = named["sasl.enabled.mechanisms"].rpartition(",")[2]
    return "\n".join(lines(BrokerConfig({"listeners": f"{listener}://127.0.0.1:9093", **between, **named}), AT))


def test_a_plain_listener_has_none() -> None:
    assert text_for("PLAINTEXT") == ""


@pytest.mark.parametrize(
    ("mechanisms", "shown"),
    [("PLAIN", "PLAIN"), ("PLAIN,SCRAM-SHA-512", "SCRAM-SHA-512"), ("OAUTHBEARER,SCRAM-SHA-256", "SCRAM-SHA-256")],
)
def test_logins_by_password(mechanisms: str, shown: str) -> None:
    text = text_for("SASL_SSL", sasl_enabled_mechanisms=mechanisms)
    assert text.splitlines()[0] == f"  logins   {mechanisms.replace(',', ', ')}"
    assert "clients  SASL_SSL, with your CA.pem, USER, PASSWORD" in text
    for word in (f"-X sasl.mechanisms={shown} -X sasl.username=USER", "ssl.truststore.location=CA.pem"):
        assert word in text
    assert f"sasl.mechanism={shown}\n" in text
    assert f"kpybroker doctor {AT} --command-config FILE" in text


def test_logins_without_a_password_show_none() -> None:
    text = text_for("SASL_PLAINTEXT", sasl_enabled_mechanisms="GSSAPI")
    assert "-X sasl.mechanisms=GSSAPI" in text
    assert "PASSWORD" not in text
    assert "CA.pem" not in text


def test_a_listener_sees_its_own_mechanisms() -> None:
    key = "listener.name.sasl_ssl.sasl.enabled.mechanisms"
    listeners = "SASL_SSL://127.0.0.1:9093,PLAINTEXT://127.0.0.1:9094"
    assert lines(BrokerConfig({"listeners": listeners, key: "PLAIN"}), AT)[0] == "  logins   PLAIN"


@pytest.mark.parametrize(("auth", "is_shown"), [("none", False), ("requested", False), ("required", True)])
def test_certificates_of_clients_where_they_are_required(auth: str, is_shown: bool) -> None:
    text = text_for("SSL", ssl_client_auth=auth)
    assert "-X ssl.ca.location=CA.pem" in text
    assert ("-X ssl.key.location=CLIENT.pem" in text) is is_shown
    assert ("ssl.keystore.location=CLIENT.pem" in text) is is_shown
    assert "sasl" not in text
