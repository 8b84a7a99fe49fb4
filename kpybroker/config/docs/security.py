"""One sentence on each security key. Imported only for DescribeConfigs with documentation and for the page."""

from __future__ import annotations

from typing import Final

# fmt: off
DOCS: Final[dict[str, str]] = {
    "authorizer.class.name": "Class that authorizes requests. Empty: every request is allowed.",
    "connection.failed.authentication.delay.ms": (
        "How long the close of a connection is delayed after it failed to authenticate."
    ),
    "connections.max.reauth.ms": (
        "How long a SASL session lasts before the client must authenticate again; 0 is forever."
    ),
    "sasl.server.max.receive.size": "Largest message accepted during SASL authentication.",
    "security.providers": "Java classes that provide security algorithms.",
    "principal.builder.class": "Java class that builds the principal of an authenticated connection.",
    "ssl.client.auth": "Whether a client certificate is required, requested, or not asked for.",
    "ssl.principal.mapping.rules": "Rules that map the distinguished name of a certificate to a user name.",
    "ssl.allow.dn.changes": "Whether a new key store may have another distinguished name.",
    "ssl.allow.san.changes": "Whether a new key store may lack alternative names of the old one.",
    "ssl.protocol": "TLS protocol used to create the context.",
    "ssl.provider": "Java provider of TLS.",
    "ssl.enabled.protocols": "TLS protocols allowed.",
    "ssl.keystore.type": "Format of the key store.",
    "ssl.keystore.location": "File of the key store.",
    "ssl.keystore.password": "Password of the key store.",
    "ssl.key.password": "Password of the private key.",
    "ssl.keystore.key": "The private key itself, as PEM text.",
    "ssl.keystore.certificate.chain": "The certificate chain itself, as PEM text.",
    "ssl.truststore.type": "Format of the trust store.",
    "ssl.truststore.location": "File of the trust store.",
    "ssl.truststore.password": "Password of the trust store.",
    "ssl.truststore.certificates": "The trusted certificates themselves, as PEM text.",
    "ssl.keymanager.algorithm": "Java algorithm of the key manager.",
    "ssl.trustmanager.algorithm": "Java algorithm of the trust manager.",
    "ssl.endpoint.identification.algorithm": (
        "How a peer's host name is checked against its certificate; empty does not check."
    ),
    "ssl.secure.random.implementation": "Java source of randomness for TLS.",
    "ssl.cipher.suites": "Cipher suites allowed.",
    "ssl.engine.factory.class": "Java class that creates TLS engines.",
    "sasl.mechanism.inter.broker.protocol": "SASL mechanism between brokers.",
    "sasl.enabled.mechanisms": "SASL mechanisms that clients may use.",
    "sasl.server.callback.handler.class": "Java class of SASL server callbacks, for one listener and mechanism.",
    "sasl.kerberos.principal.to.local.rules": "Rules that map a Kerberos principal to a user name.",
    "sasl.jaas.config": "JAAS login settings, for one listener and mechanism.",
    "sasl.client.callback.handler.class": "Java class of SASL client callbacks.",
    "sasl.login.class": "Java class of the login.",
    "sasl.login.callback.handler.class": "Java class of login callbacks.",
    "sasl.kerberos.service.name": "Kerberos name of the brokers' service.",
    "sasl.kerberos.kinit.cmd": "Path of kinit.",
    "sasl.kerberos.ticket.renew.window.factor": "Share of a ticket's life after which it is renewed.",
    "sasl.kerberos.ticket.renew.jitter": "Random share added to that time.",
    "sasl.kerberos.min.time.before.relogin": "Shortest time between two renewals.",
    "sasl.login.refresh.window.factor": "Share of a token's life after which it is renewed.",
    "sasl.login.refresh.window.jitter": "Random share added to that time.",
    "sasl.login.refresh.min.period.seconds": "Shortest time between two renewals of a token.",
    "sasl.login.refresh.buffer.seconds": "How long before its expiry a token is renewed at the latest.",
    "sasl.login.connect.timeout.ms": "How long a connection to the identity provider may take.",
    "sasl.login.read.timeout.ms": "How long a response of the identity provider may take.",
    "sasl.login.retry.backoff.max.ms": "Longest wait between two calls to the identity provider.",
    "sasl.login.retry.backoff.ms": "First wait between two calls to the identity provider.",
    "sasl.oauthbearer.scope.claim.name": "Claim that holds a token's scope.",
    "sasl.oauthbearer.sub.claim.name": "Claim that holds a token's subject.",
    "sasl.oauthbearer.token.endpoint.url": "Where tokens are issued.",
    "sasl.oauthbearer.jwks.endpoint.url": "Where the issuer's keys are found.",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": "How often the issuer's keys are fetched again.",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "First wait after those keys could not be fetched.",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "Longest wait after those keys could not be fetched.",
    "sasl.oauthbearer.clock.skew.seconds": "How far the issuer's clock may differ from the broker's.",
    "sasl.oauthbearer.expected.audience": "Audiences, of which a token must name one.",
    "sasl.oauthbearer.expected.issuer": "Issuer that a token must name.",
    "sasl.oauthbearer.jwt.retriever.class": "Java class that gets tokens. Of Kafka 4.",
    "sasl.oauthbearer.jwt.validator.class": "Java class that validates tokens. Of Kafka 4.",
    "sasl.oauthbearer.client.credentials.client.id": (
        "Client id with which this broker gets tokens for its logins at others. Of Kafka 4; takes the place of "
        "clientId in the JAAS module."
    ),
    "sasl.oauthbearer.client.credentials.client.secret": (
        "Secret of that client id. Of Kafka 4; takes the place of clientSecret in the JAAS module."
    ),
    "sasl.oauthbearer.scope": (
        "Scope that this broker asks for with it. Of Kafka 4; takes the place of scope in the JAAS module."
    ),
    "sasl.oauthbearer.assertion.algorithm": "Algorithm that signs assertions. Of Kafka 4.",
    "sasl.oauthbearer.assertion.claim.aud": "Audience of assertions. Of Kafka 4.",
    "sasl.oauthbearer.assertion.claim.exp.seconds": "How long an assertion is valid. Of Kafka 4.",
    "sasl.oauthbearer.assertion.claim.iss": "Issuer of assertions. Of Kafka 4.",
    "sasl.oauthbearer.assertion.claim.jti.include": "Whether assertions have an id of their own. Of Kafka 4.",
    "sasl.oauthbearer.assertion.claim.nbf.seconds": "How long before now an assertion is valid. Of Kafka 4.",
    "sasl.oauthbearer.assertion.claim.sub": "Subject of assertions. Of Kafka 4.",
    "sasl.oauthbearer.assertion.file": "File with an assertion. Of Kafka 4.",
    "sasl.oauthbearer.assertion.private.key.file": "Key that signs assertions. Of Kafka 4.",
    "sasl.oauthbearer.assertion.private.key.passphrase": "Passphrase of that key. Of Kafka 4.",
    "sasl.oauthbearer.assertion.template.file": "File with more claims of assertions. Of Kafka 4.",
    "delegation.token.master.key": "Older name of delegation.token.secret.key.",
    "delegation.token.secret.key": "Key that signs delegation tokens, the same on all brokers.",
    "delegation.token.max.lifetime.ms": "How long a delegation token can live at most, renewed or not.",
    "delegation.token.expiry.time.ms": "How long a delegation token lives before it must be renewed.",
    "delegation.token.expiry.check.interval.ms": "How often expired delegation tokens are removed.",
    "password.encoder.secret": "Secret with which dynamic passwords are encoded in ZooKeeper.",
    "password.encoder.old.secret": "The former secret, while passwords are encoded again.",
    "password.encoder.keyfactory.algorithm": "Java algorithm that derives a key from the secret.",
    "password.encoder.cipher.algorithm": "Java cipher that encodes passwords.",
    "password.encoder.key.length": "Length of the key derived from the secret, in bits.",
    "password.encoder.iterations": "Iterations of the key derivation.",
}
# fmt: on
