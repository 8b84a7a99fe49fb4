"""Security keys: TLS, SASL, delegation tokens, authorizer.

Rows as in `keys.definition`, in Kafka's order.
"""

from __future__ import annotations

from typing import Final

from kpybroker.config.keys.definition import (
    LOW,
    MEDIUM,
    PER_BROKER,
    READ_ONLY,
    Row,
)
from kpybroker.config.keys.status import (
    HONOURED,
    NO_JVM_PLUGIN,
    NO_SASL,
    OPENSSL,
)
from kpybroker.config.values import (
    ANYTHING,
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    NON_NULL,
    PASSWORD,
    SHORT,
    STRING,
    at_least,
    one_of,
)

# fmt: off
ROWS: Final[tuple[Row, ...]] = (
    ("authorizer.class.name", STRING, "", NON_NULL, LOW, READ_ONLY, HONOURED),
    ("connection.failed.authentication.delay.ms", INT, "100", at_least(0), LOW, READ_ONLY, HONOURED),
    ("connections.max.reauth.ms", LONG, "0", ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("sasl.server.max.receive.size", INT, "524288", ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("security.providers", STRING, None, ANYTHING, LOW, READ_ONLY, NO_JVM_PLUGIN),
    ("principal.builder.class", CLASS,
     "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
     ANYTHING, MEDIUM, PER_BROKER, NO_JVM_PLUGIN),
    ("ssl.client.auth", STRING, "none", one_of("required", "requested", "none"), MEDIUM, PER_BROKER, HONOURED),
    ("ssl.principal.mapping.rules", STRING, "DEFAULT", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("ssl.allow.dn.changes", BOOLEAN, "false", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("ssl.allow.san.changes", BOOLEAN, "false", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("ssl.protocol", STRING, "TLSv1.3", ANYTHING, MEDIUM, PER_BROKER, OPENSSL),
    ("ssl.provider", STRING, None, ANYTHING, MEDIUM, PER_BROKER, OPENSSL),
    ("ssl.enabled.protocols", LIST, "TLSv1.2,TLSv1.3", ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("ssl.keystore.type", STRING, "JKS", ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("ssl.keystore.location", STRING, None, ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("ssl.keystore.password", PASSWORD, None, ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("ssl.key.password", PASSWORD, None, ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("ssl.keystore.key", PASSWORD, None, ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("ssl.keystore.certificate.chain", PASSWORD, None, ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("ssl.truststore.type", STRING, "JKS", ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("ssl.truststore.location", STRING, None, ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("ssl.truststore.password", PASSWORD, None, ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("ssl.truststore.certificates", PASSWORD, None, ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("ssl.keymanager.algorithm", STRING, "SunX509", ANYTHING, MEDIUM, PER_BROKER, OPENSSL),
    ("ssl.trustmanager.algorithm", STRING, "PKIX", ANYTHING, MEDIUM, PER_BROKER, OPENSSL),
    ("ssl.endpoint.identification.algorithm", STRING, "https", ANYTHING, LOW, PER_BROKER, HONOURED),
    ("ssl.secure.random.implementation", STRING, None, ANYTHING, LOW, PER_BROKER, OPENSSL),
    ("ssl.cipher.suites", LIST, "", ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("ssl.engine.factory.class", CLASS, None, ANYTHING, LOW, PER_BROKER, NO_JVM_PLUGIN),
    ("sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("sasl.enabled.mechanisms", LIST, "GSSAPI", ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("sasl.server.callback.handler.class", CLASS, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("sasl.kerberos.principal.to.local.rules", LIST, "DEFAULT", ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("sasl.jaas.config", PASSWORD, None, ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("sasl.client.callback.handler.class", CLASS, None, ANYTHING, MEDIUM, READ_ONLY, NO_SASL),
    ("sasl.login.class", CLASS, None, ANYTHING, MEDIUM, READ_ONLY, NO_SASL),
    ("sasl.login.callback.handler.class", CLASS, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("sasl.kerberos.service.name", STRING, None, ANYTHING, MEDIUM, PER_BROKER, HONOURED),
    ("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", ANYTHING, MEDIUM, PER_BROKER, NO_SASL),
    ("sasl.kerberos.ticket.renew.window.factor", DOUBLE, "0.8", ANYTHING, MEDIUM, PER_BROKER, NO_SASL),
    ("sasl.kerberos.ticket.renew.jitter", DOUBLE, "0.05", ANYTHING, MEDIUM, PER_BROKER, NO_SASL),
    ("sasl.kerberos.min.time.before.relogin", LONG, "60000", ANYTHING, MEDIUM, PER_BROKER, NO_SASL),
    ("sasl.login.refresh.window.factor", DOUBLE, "0.8", ANYTHING, MEDIUM, PER_BROKER, NO_SASL),
    ("sasl.login.refresh.window.jitter", DOUBLE, "0.05", ANYTHING, MEDIUM, PER_BROKER, NO_SASL),
    ("sasl.login.refresh.min.period.seconds", SHORT, "60", ANYTHING, MEDIUM, PER_BROKER, NO_SASL),
    ("sasl.login.refresh.buffer.seconds", SHORT, "300", ANYTHING, MEDIUM, PER_BROKER, NO_SASL),
    ("sasl.login.connect.timeout.ms", INT, None, ANYTHING, LOW, READ_ONLY, NO_SASL),
    ("sasl.login.read.timeout.ms", INT, None, ANYTHING, LOW, READ_ONLY, NO_SASL),
    ("sasl.login.retry.backoff.max.ms", LONG, "10000", ANYTHING, LOW, READ_ONLY, NO_SASL),
    ("sasl.login.retry.backoff.ms", LONG, "100", ANYTHING, LOW, READ_ONLY, NO_SASL),
    ("sasl.oauthbearer.scope.claim.name", STRING, "scope", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("sasl.oauthbearer.sub.claim.name", STRING, "sub", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("sasl.oauthbearer.token.endpoint.url", STRING, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("sasl.oauthbearer.jwks.endpoint.url", STRING, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, "3600000", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, "100", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, "10000", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("sasl.oauthbearer.clock.skew.seconds", INT, "30", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("sasl.oauthbearer.expected.audience", LIST, None, ANYTHING, LOW, READ_ONLY, HONOURED),
    ("sasl.oauthbearer.expected.issuer", STRING, None, ANYTHING, LOW, READ_ONLY, HONOURED),
    ("delegation.token.master.key", PASSWORD, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("delegation.token.secret.key", PASSWORD, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("delegation.token.max.lifetime.ms", LONG, "604800000", at_least(1), MEDIUM, READ_ONLY, HONOURED),
    ("delegation.token.expiry.time.ms", LONG, "86400000", at_least(1), MEDIUM, READ_ONLY, HONOURED),
    ("delegation.token.expiry.check.interval.ms", LONG, "3600000", at_least(1), LOW, READ_ONLY, HONOURED),
    ("password.encoder.secret", PASSWORD, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("password.encoder.old.secret", PASSWORD, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("password.encoder.keyfactory.algorithm", STRING, None, ANYTHING, LOW, READ_ONLY, HONOURED),
    ("password.encoder.cipher.algorithm", STRING, "AES/CBC/PKCS5Padding", ANYTHING, LOW, READ_ONLY,
     HONOURED),
    ("password.encoder.key.length", INT, "128", at_least(8), LOW, READ_ONLY, HONOURED),
    ("password.encoder.iterations", INT, "4096", at_least(1024), LOW, READ_ONLY, HONOURED),
)
# fmt: on

PER_LISTENER: Final = frozenset(
    {
        *(row[0] for row in ROWS if row[0].startswith("ssl.")),
        "connections.max.reauth.ms",
        "max.connection.creation.rate",
        "max.connections",
        "sasl.enabled.mechanisms",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.server.callback.handler.class",
        "sasl.server.max.receive.size",
    }
)
"""Keys that have an effect of their own for one listener."""

PER_MECHANISM_ONLY: Final = frozenset(
    {"sasl.jaas.config", "sasl.login.callback.handler.class", "sasl.server.callback.handler.class"}
)
"""Keys that a broker reads only as `listener.name.<listener>.<mechanism>.<key>`."""
