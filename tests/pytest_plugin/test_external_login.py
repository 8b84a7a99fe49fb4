"""The login of a real cluster in the spelling of each library."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from kpybroker.pytest_plugin.external_login import settings
from kpybroker.testing import Broker, UsageError
from kpybroker.testing.clients.libraries import LIBRARIES

SCRAM = {
    "security.protocol": "sasl_ssl",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "alice",
    "sasl.password": 'a"b\\c',
    "ssl.ca.location": "ca.pem",
    "socket.timeout.ms": "5000",
}
MUTUAL = {
    "security.protocol": "SSL",
    "ssl.certificate.location": "me.pem",
    "ssl.key.location": "me.pem",
    "ssl.key.password": "secret",
    "ssl.endpoint.identification.algorithm": "none",
}
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("library", "properties", "expected"),
    [
        ("confluent-kafka", SCRAM, SCRAM),
        (
            "kafka-python",
            SCRAM,
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "SCRAM-SHA-512",
                "sasl_plain_username": "alice",
                "sasl_plain_password": 'a"b\\c',
                "ssl_cafile": "ca.pem",
            },
        ),
        (
            "kafka-python",
            MUTUAL,
            {
                "security_protocol": "SSL",
                "ssl_certfile": "me.pem",
                "ssl_keyfile": "me.pem",
                "ssl_password": "secret",
                "ssl_check_hostname": False,
            },
        ),
        (
            "java",
            SCRAM,
            {
                "security.protocol": "SASL_SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": "ca.pem",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": f'{MODULE} required username="alice" password="a\\"b\\\\c";',
            },
        ),
        (
            "spark",
            MUTUAL,
            {
                "kafka.security.protocol": "SSL",
                "kafka.ssl.keystore.type": "PEM",
                "kafka.ssl.keystore.location": "me.pem",
                "kafka.ssl.key.password": "secret",
                "kafka.ssl.endpoint.identification.algorithm": "",
            },
        ),
        ("java", {}, {}),
        ("aiokafka", {}, {}),
        ("aiokafka", {"security.protocol": "plaintext"}, {"security_protocol": "PLAINTEXT"}),
    ],
)
def test_each_library_has_its_own_words(library: str, properties: dict[str, str], expected: dict[str, Any]) -> None:
    assert settings(library, properties) == expected


def test_aiokafka_takes_a_context(tmp_path: Path) -> None:
    with Broker(tls=True, data_dir=tmp_path / "data", in_thread=True) as broker:
        given = broker.config("confluent-kafka")
    del given["bootstrap.servers"]
    found = settings("aiokafka", given)
    context = found.pop("ssl_context")
    assert found == {"security_protocol": "SSL"}
    assert isinstance(context, ssl.SSLContext)
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1
    unnamed = settings("aiokafka", given | {"ssl.endpoint.identification.algorithm": "none"})["ssl_context"]
    assert not unnamed.check_hostname


@pytest.mark.parametrize("library", [one for one in LIBRARIES if one != "confluent-kafka"])
@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"sasl.mechanism": "OAUTHBEARER"}, "sasl.mechanism=OAUTHBEARER"),
        ({"sasl.mechanism": "GSSAPI", "sasl.kerberos.keytab": "k"}, "sasl.mechanism=GSSAPI"),
        ({"security.protocol": "SSL", "ssl.keystore.location": "me.p12"}, "ssl.keystore.location"),
        ({"ssl.ca.pem": "-----BEGIN"}, "ssl.ca.pem"),
    ],
)
def test_what_a_library_has_no_word_for_is_refused(library: str, properties: dict[str, str], named: str) -> None:
    with pytest.raises(UsageError, match="cannot log in with") as caught:
        settings(library, properties)
    assert caught.value.cause.endswith(f" cannot log in with {named}")


def test_java_takes_one_file_for_key_and_certificate() -> None:
    with pytest.raises(UsageError, match="from one file"):
        settings("java", MUTUAL | {"ssl.key.location": "key.pem"})
