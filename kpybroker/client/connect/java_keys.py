"""Keys of Kafka 3.9's Java clients that have no effect here."""

from __future__ import annotations

import re
from typing import Final

_ONLY_JAVA: Final = """
auto.include.jmx.reporter bootstrap.controllers buffer.memory default.api.timeout.ms enable.metrics.push
exclude.internal.topics group.remote.assignor internal.leave.group.on.close
internal.throw.on.fetch.stable.offset.unsupported key.deserializer key.serializer value.deserializer
value.serializer max.block.ms max.poll.records metadata.max.idle.ms metadata.recovery.strategy metric.reporters
metadata.recovery.rebootstrap.trigger.ms metrics.num.samples metrics.recording.level metrics.sample.window.ms
partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
partitioner.ignore.keys compression.gzip.level compression.lz4.level compression.zstd.level
sasl.client.callback.handler.class sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.scope.claim.name security.providers
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms ssl.enabled.protocols
ssl.engine.factory.class ssl.keymanager.algorithm ssl.keystore.type ssl.protocol ssl.provider
ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.type
"""

OF_THE_APPLICATION: Final = frozenset(
    {
        "group.id",
        "group.instance.id",
        "transactional.id",
        "enable.auto.commit",
        "auto.commit.interval.ms",
        "interceptor.classes",
    }
)
"""Keys by which a command that uses an application's file would disturb that application."""

UNREMARKABLE: Final = re.compile(
    r".*serializer|.*store\.type|metric.*|auto\.include.*|enable\.metrics.*|default\.api.*"
)
"""Ignored keys that most files have, and that no one misses here."""

IGNORED: Final = OF_THE_APPLICATION | frozenset(_ONLY_JAVA.split())
"""Those, and the keys that librdkafka does not have."""
