"""Java's client properties as librdkafka's keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.java_keys import IGNORED
from kpybroker.client.connect.properties import is_secret, jaas_options, translate, unknown_key
from tests.support.network.certificates import Authority

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

JAVA_CLIENT_KEYS = """
acks=all allow.auto.create.topics=true auto.commit.interval.ms=5000 auto.include.jmx.reporter=true
auto.offset.reset=none batch.size=16384 bootstrap.controllers=x:1 buffer.memory=33554432 check.crcs=true
client.dns.lookup=use_all_dns_ips client.rack=a compression.gzip.level=-1 compression.lz4.level=9
compression.type=none compression.zstd.level=3 connections.max.idle.ms=540000 default.api.timeout.ms=60000
delivery.timeout.ms=120000 enable.auto.commit=true enable.idempotence=true enable.metrics.push=true
exclude.internal.topics=true fetch.max.bytes=52428800 fetch.max.wait.ms=500 fetch.min.bytes=1 group.id=g
group.instance.id=i group.protocol=classic group.remote.assignor=uniform heartbeat.interval.ms=3000
interceptor.classes= internal.leave.group.on.close=true isolation.level=read_uncommitted key.deserializer=a.B
key.serializer=a.B linger.ms=0 max.block.ms=60000 max.in.flight.requests.per.connection=5
max.partition.fetch.bytes=1048576 max.poll.interval.ms=300000 max.poll.records=500 max.request.size=1048576
metadata.max.age.ms=300000 metadata.max.idle.ms=300000 metadata.recovery.strategy=none metric.reporters=
metrics.num.samples=2 metrics.recording.level=INFO metrics.sample.window.ms=30000
partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor
partitioner.adaptive.partitioning.enable=true partitioner.availability.timeout.ms=0 partitioner.class=a.B
partitioner.ignore.keys=false receive.buffer.bytes=-1 reconnect.backoff.max.ms=1000 reconnect.backoff.ms=50
request.timeout.ms=30000 retries=2147483647 retry.backoff.max.ms=1000 retry.backoff.ms=100
sasl.client.callback.handler.class=a.B sasl.kerberos.kinit.cmd=/usr/bin/kinit
sasl.kerberos.min.time.before.relogin=60000 sasl.kerberos.service.name=kafka
sasl.kerberos.ticket.renew.jitter=0.05 sasl.kerberos.ticket.renew.window.factor=0.8
sasl.login.callback.handler.class=a.B sasl.login.class=a.B sasl.login.connect.timeout.ms=1
sasl.login.read.timeout.ms=1 sasl.login.refresh.buffer.seconds=300 sasl.login.refresh.min.period.seconds=60
sasl.login.refresh.window.factor=0.8 sasl.login.refresh.window.jitter=0.05 sasl.login.retry.backoff.max.ms=10000
sasl.login.retry.backoff.ms=100 sasl.mechanism=PLAIN sasl.oauthbearer.clock.skew.seconds=30
sasl.oauthbearer.expected.audience=a sasl.oauthbearer.expected.issuer=i sasl.oauthbearer.header.urlencode=false
sasl.oauthbearer.jwks.endpoint.refresh.ms=3600000 sasl.oauthbearer.jwks.endpoint.url=u
sasl.oauthbearer.scope.claim.name=scope sasl.oauthbearer.sub.claim.name=sub
sasl.oauthbearer.token.endpoint.url=https://t security.protocol=PLAINTEXT security.providers=a
send.buffer.bytes=131072 session.timeout.ms=45000 socket.connection.setup.timeout.max.ms=30000
socket.connection.setup.timeout.ms=10000 ssl.enabled.protocols=TLSv1.2 ssl.endpoint.identification.algorithm=https
ssl.engine.factory.class=a.B ssl.key.password=p ssl.keymanager.algorithm=SunX509 ssl.keystore.password=p
ssl.keystore.type=JKS ssl.protocol=TLSv1.3 ssl.provider=p ssl.secure.random.implementation=s
ssl.trustmanager.algorithm=PKIX ssl.truststore.password=p ssl.truststore.type=JKS transaction.timeout.ms=60000
transactional.id=t value.deserializer=a.B value.serializer=a.B
"""
"""Keys of Kafka 3.9's admin client, consumer and producer."""


@pytest.mark.parametrize("pair", JAVA_CLIENT_KEYS.split())
def test_every_key_of_a_java_client_is_taken_by_librdkafka_or_left_out(pair: str) -> None:
    key, _, value = pair.partition("=")
    translated, ignored = translate({key: value})
    assert bool(translated) != (key in IGNORED or key == "ssl.truststore.password")
    assert set(ignored) <= {key}
    Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0, **translated})


def test_a_login_is_taken_out_of_the_jaas_configuration() -> None:
    text = f'{PLAIN} required username="al\\"ice" password="s=1;,";'
    translated, _ = translate({"sasl.jaas.config": text, "sasl.mechanism": "PLAIN"})
    assert translated == {"sasl.username": 'al"ice', "sasl.password": "s=1;,", "sasl.mechanism": "PLAIN"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.Krb5LoginModule required useKeyTab=true keyTab='/k' principal=\"p@R\";", ("Krb5LoginModule", "/k")),
        ("Krb5LoginModule\n required\n keyTab=/k;", ("Krb5LoginModule", "/k")),
    ],
)
def test_jaas_options_may_be_quoted_either_way_or_not(text: str, expected: tuple[str, str]) -> None:
    module, options = jaas_options(text)
    assert (module, options["keyTab"]) == expected


def test_oauth_and_kerberos_logins_become_librdkafkas_keys() -> None:
    oauth = 'x.OAuthBearerLoginModule required clientId="me" clientSecret="hush" scope="s";'
    assert translate({"sasl.jaas.config": oauth})[0] == {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "hush",
        "sasl.oauthbearer.scope": "s",
    }
    kerberos = 'x.Krb5LoginModule required keyTab="/k" principal="p";'
    assert translate({"sasl.jaas.config": kerberos})[0] == {
        "sasl.kerberos.keytab": "/k",
        "sasl.kerberos.principal": "p",
    }


@pytest.mark.parametrize("text", ["nonsense", 'x.Other required password="hush-hush";'])
def test_a_bad_jaas_configuration_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(CommandError) as caught:
        translate({"sasl.jaas.config": text})
    assert caught.value.exit_code == 2
    assert "hush-hush" not in caught.value.cause + caught.value.fix


def test_stores_are_recognized_by_their_content(tmp_path: Path) -> None:
    pem, p12 = Authority(tmp_path).issue("client")
    assert translate({"ssl.truststore.location": str(pem)})[0] == {"ssl.ca.location": str(pem)}
    assert translate({"ssl.keystore.location": str(p12), "ssl.keystore.password": "p"})[0] == {
        "ssl.keystore.location": str(p12),
        "ssl.keystore.password": "p",
    }
    given = {"ssl.keystore.location": str(pem), "ssl.keystore.password": "p"}
    assert translate(given)[0] == {
        "ssl.certificate.location": str(pem),
        "ssl.key.location": str(pem),
        "ssl.key.password": "p",
    }
    jks = tmp_path / "store.jks"
    jks.write_bytes(b"\xfe\xed\xfe\xed" + bytes(20))
    for key in ("ssl.truststore.location", "ssl.keystore.location"):
        with pytest.raises(CommandError, match="JKS") as caught:
            translate({key: str(jks)})
        assert f"-srckeystore {jks}" in caught.value.fix
    with pytest.raises(CommandError, match="PKCS12"):
        translate({"ssl.truststore.location": str(p12)})
    with pytest.raises(CommandError, match="cannot be read"):
        translate({"ssl.truststore.location": str(tmp_path / "none")})


def test_values_that_differ_are_converted() -> None:
    given = {
        "ssl.endpoint.identification.algorithm": "",
        "partition.assignment.strategy": "a.RangeAssignor, a.CooperativeStickyAssignor",
        "bootstrap.servers": "a:1, b:2",
    }
    assert translate(given)[0] == {
        "ssl.endpoint.identification.algorithm": "none",
        "partition.assignment.strategy": "cooperative-sticky",
        "bootstrap.servers": "a:1,b:2",
    }


def test_only_keys_that_may_be_missed_are_named() -> None:
    _, ignored = translate({"key.serializer": "a.B", "ssl.engine.factory.class": "a.B", "group.id": "g"})
    assert ignored == ["ssl.engine.factory.class", "group.id"]


@pytest.mark.parametrize(
    "key",
    ["sasl.password", "ssl.key.password", "sasl.jaas.config", "ssl.keystore.key", "sasl.oauthbearer.client.secret"],
)
def test_these_are_secrets(key: str) -> None:
    assert is_secret(key)
    assert not is_secret("sasl.username")


def test_a_key_that_no_one_knows_is_named_with_its_source() -> None:
    error = unknown_key('No such configuration property: "bostrap.servers"', "x.properties")
    assert error is not None
    assert error.cause == "bostrap.servers is a key of neither a Java client nor librdkafka (x.properties)"
    bad = unknown_key('Invalid value "x" for configuration property "acks"', "-X")
    assert bad is not None
    assert "acks" in bad.fix
    assert unknown_key("something else", "-X") is None
