"""Settings of the Java client for librdkafka, which takes what they become."""

from __future__ import annotations

import pytest

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.sinks.client_settings import for_librdkafka

SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="a b" password="q\\"\\\\;x";'


def test_a_login_and_an_authority() -> None:
    found = for_librdkafka(
        {
            "bootstrap.servers": "h:1",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": SCRAM,
            "ssl.truststore.location": "/ca.pem",
            "ssl.truststore.type": "PEM",
            "ssl.endpoint.identification.algorithm": "",
            "fetch.max.bytes": "1000",
        }
    )
    assert found == {
        "bootstrap.servers": "h:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "a b",
        "sasl.password": 'q"\\;x',
        "ssl.ca.location": "/ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
    }


@pytest.mark.parametrize(
    ("store", "found"),
    [
        ("PEM", {"ssl.certificate.location": "/k", "ssl.key.location": "/k", "ssl.key.password": "p"}),
        ("PKCS12", {"ssl.keystore.location": "/k", "ssl.keystore.password": "s", "ssl.key.password": "p"}),
    ],
)
def test_a_certificate(store: str, found: dict[str, str]) -> None:
    given = {"ssl.keystore.location": "/k", "ssl.keystore.type": store, "ssl.key.password": "p"}
    assert for_librdkafka({**given, "ssl.keystore.password": "s"}) == found


@pytest.mark.parametrize(
    "setting",
    [
        {"ssl.truststore.location": "/ca.jks", "ssl.truststore.password": "geheim"},
        {"ssl.keystore.location": "/k.jks", "ssl.keystore.password": "geheim"},
        {"sasl.jaas.config": 'com.sun.security.auth.module.Krb5LoginModule required keyTab="geheim";'},
        {"ssl.engine.factory.class": "x.Y"},
    ],
)
def test_what_librdkafka_does_not_have_is_refused_without_its_secret(setting: dict[str, str]) -> None:
    with pytest.raises(PipelineError, match="librdkafka") as raised:
        for_librdkafka(setting)
    assert "geheim" not in str(raised.value)
    assert next(iter(setting)) in raised.value.cause
