"""What clients set, in the spelling of each library."""

from __future__ import annotations

import base64
import json

import pytest

from kpybroker.control.development import logins
from kpybroker.control.development.certificates import TlsFiles
from kpybroker.control.development.logins import Login
from kpybroker.control.development.security import SecurityOptions

FILES = TlsFiles("/ca", "/broker", "/client")
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def test_a_user_with_a_password() -> None:
    login = Login(SecurityOptions(tls=True, sasl="scram"), "bob", FILES)
    assert logins.librdkafka(login) == {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "/ca",
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": "bob",
        "sasl.password": "bob-secret",
    }
    java = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{SCRAM} required username="bob" password="bob-secret";',
    }
    assert logins.java(login) == java
    assert logins.spark(login) == {f"kafka.{name}": value for name, value in java.items()}
    assert logins.kafka_python(login) == {
        "security_protocol": "SASL_SSL",
        "ssl_cafile": "/ca",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "bob",
        "sasl_plain_password": "bob-secret",
    }


def test_a_certificate_in_place_of_a_user() -> None:
    login = Login(SecurityOptions(tls=True), "", FILES)
    assert logins.librdkafka(login)["ssl.key.location"] == "/client"
    assert logins.java(login)["ssl.keystore.location"] == "/client"
    assert logins.kafka_python(login)["ssl_certfile"] == "/client"
    assert not any("sasl" in name for name in logins.java(login))


@pytest.mark.parametrize("library", logins.BY_LIBRARY)
def test_a_token_in_place_of_a_password(library: str) -> None:
    settings = logins.BY_LIBRARY[library](Login(SecurityOptions(sasl="oauthbearer"), "zoe"))
    text = str(settings)
    assert "OAUTHBEARER" in text
    assert "password" not in text
    assert "zoe" in text or "sasl_oauth_token_provider" in settings


def test_an_unsecured_token_names_the_user() -> None:
    body = logins.unsecured_token("zoe").split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    assert claims["sub"] == "zoe"
    assert claims["exp"] - claims["iat"] == logins.TOKEN_S
