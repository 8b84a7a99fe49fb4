"""OAUTHBEARER of a listener, from its settings: which tokens it accepts.

Signed tokens, where `sasl.oauthbearer.jwks.endpoint.url` is set or `sasl.server.callback.handler.class` is Kafka's
validator of these. Unsecured tokens, only where the JAAS module has an option that says so (`unsecured...`): Kafka
takes them wherever no callback class is set.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from kpybroker.broker.security.login_settings import LoginConfigError, value
from kpybroker.config.jaas import JAAS, mechanism_key
from kpybroker.core.security.sasl.bearer_tokens import Expected, UnsecuredValidator
from kpybroker.core.security.sasl.oauthbearer import NAME, OAuthBearerMechanism, Validator

if TYPE_CHECKING:
    from kpybroker.broker.security.jwks import Read
    from kpybroker.broker.security.login_settings import Settings

logger = logging.getLogger("kafka.network.SocketServer")

MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
CALLBACK: Final = "sasl.server.callback.handler.class"
SIGNED_CALLBACKS: Final = frozenset(
    {
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
    }
)
UNSECURED_CALLBACK: Final = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
UNSECURED: Final = "unsecured"
URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_TRUSTSTORE: Final = "ssl.truststore"
TRUSTSTORE: Final = f"{_TRUSTSTORE}.location"
TRUSTSTORE_TYPE: Final = f"{_TRUSTSTORE}.type"
"""Options of the JAAS module, not keys."""
EXTRA: Final = "pip install 'kpybroker[security]'"


def make(settings: Settings) -> OAuthBearerMechanism:
    """The mechanism. Raises LoginConfigError. A file of keys is read now, one behind HTTPS at the first login."""
    options = _options(settings)
    callback = settings.text(CALLBACK)
    url = cast("str | None", value(settings, URL))
    if callback in SIGNED_CALLBACKS or (callback is None and url):
        return OAuthBearerMechanism(_signed(settings, url, options), blocks=True)
    if callback not in (None, UNSECURED_CALLBACK):
        key = mechanism_key(settings.listener, NAME, CALLBACK)
        raise LoginConfigError(
            f"{key}={callback} is a Java class, and there is no JVM here to load it",
            f"remove {key}, and set {URL} to where the keys of the tokens are",
        )
    if not any(name.startswith(UNSECURED) for name in options):
        example = _example(settings, 'unsecuredValidatorPrincipalClaimName="sub"')
        raise LoginConfigError(
            f"OAUTHBEARER on listener {settings.listener} would accept tokens that no one has signed",
            f"set {URL}; or, to accept them, set {example}",
        )
    logger.warning(
        "Listener %s accepts unsecured OAUTHBEARER tokens: every client is whom it says it is", settings.listener
    )
    return OAuthBearerMechanism(_unsecured(settings, options))


def _options(settings: Settings) -> Mapping[str, str]:
    """Of all its login modules; the first one decides."""
    options: dict[str, str] = {}
    for module in settings.modules_of(MODULE):
        options = {**module.options, **options}
    return options


def _example(settings: Settings, options: str) -> str:
    return f"{mechanism_key(settings.listener, NAME, JAAS)}={MODULE} required {options};"


def _unsecured(settings: Settings, options: Mapping[str, str]) -> Validator:
    skew = options.get("unsecuredValidatorAllowableClockSkewMs", "").strip() or "0"
    if not skew.isdecimal():
        raise LoginConfigError(
            "the option unsecuredValidatorAllowableClockSkewMs is no number of milliseconds",
            "set " + _example(settings, 'unsecuredValidatorAllowableClockSkewMs="3000"'),
        )
    return UnsecuredValidator(
        options.get("unsecuredValidatorPrincipalClaimName", "").strip() or "sub",
        options.get("unsecuredValidatorScopeClaimName", "").strip() or "scope",
        tuple(options.get("unsecuredValidatorRequiredScope", "").split()),
        int(skew),
    )


def _signed(settings: Settings, url: str | None, options: Mapping[str, str]) -> Validator:
    try:
        from kpybroker.broker.security.jwks import Jwks, JwksUnavailable, Pace, SignedValidator
    except ImportError as error:
        raise LoginConfigError(f"signed tokens of OAUTHBEARER need the package {error.name}", EXTRA) from error
    if not url:
        raise LoginConfigError(
            f"OAUTHBEARER on listener {settings.listener} needs the keys of its tokens, but {URL} is not set",
            f"set {URL}=https://... or file:///...",
        )
    pace = Pace(*(_milliseconds(settings, f"sasl.oauthbearer.jwks.endpoint.{key}") / 1000 for key in _PACE))
    jwks = Jwks(_reader(url, options), pace)
    if url.lower().startswith("file:"):
        try:
            jwks.load()
        except JwksUnavailable as error:
            raise LoginConfigError(f"{URL}: {error}", f"set {URL} to a JWKS document that exists") from error
    return SignedValidator(jwks, _expected(settings))


_PACE: Final = ("refresh.ms", "retry.backoff.ms", "retry.backoff.max.ms")


def _milliseconds(settings: Settings, key: str) -> int:
    return max(cast(int, value(settings, key)), 0)


def _expected(settings: Settings) -> Expected:
    return Expected(
        audiences=tuple(cast("Sequence[str] | None", value(settings, "sasl.oauthbearer.expected.audience")) or ()),
        issuer=cast("str | None", value(settings, "sasl.oauthbearer.expected.issuer")),
        skew_ms=cast(int, value(settings, "sasl.oauthbearer.clock.skew.seconds")) * 1000,
        subject_claim=cast(str, value(settings, "sasl.oauthbearer.sub.claim.name")),
        scope_claim=cast(str, value(settings, "sasl.oauthbearer.scope.claim.name")),
    )


def trusted_file(options: Mapping[str, str]) -> str | None:
    """The certificates that an HTTPS server is checked with, by the JAAS module; None: the machine's.

    Raises LoginConfigError for stores that are not PEM.
    """
    ca_file = options.get(TRUSTSTORE)
    if ca_file is not None and options.get(TRUSTSTORE_TYPE, "JKS").upper() != "PEM":
        raise LoginConfigError(
            f"the option {TRUSTSTORE} of the JAAS module is not of the type PEM",
            f'write the certificates into a PEM file and set {TRUSTSTORE_TYPE}="PEM" in the JAAS module',
        )
    return ca_file


def _reader(url: str, options: Mapping[str, str]) -> Read:
    from kpybroker.broker.security.jwks import reader

    ca_file = trusted_file(options)
    try:
        return reader(url, ca_file)
    except ValueError:
        raise LoginConfigError(f"{URL} is no file: or https: URL", f"set {URL}=https://... or file:///...") from None
    except OSError as error:
        cause = error.strerror or type(error).__name__
        raise LoginConfigError(
            f"the certificates in {ca_file} cannot be read: {cause}", f"correct {TRUSTSTORE}"
        ) from None
