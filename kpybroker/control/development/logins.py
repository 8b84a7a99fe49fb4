"""What a client of a broker for development sets, in the spelling of each library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kpybroker.control.development.security import MODULES, OAUTHBEARER, USERS, SecurityOptions

if TYPE_CHECKING:
    from kpybroker.control.development.certificates import TlsFiles

TOKEN_S: Final = 3600
"""How long an unsecured token is valid."""


class Login(NamedTuple):
    """Who a client is, and which authority it trusts. `user` matters with a mechanism only: else the certificate is
    the client's name."""

    wanted: SecurityOptions
    user: str
    tls: TlsFiles | None = None

    @property
    def password(self) -> str:
        """Of the user. Raises KeyError."""
        return USERS[self.user]

    @property
    def certificate(self) -> str | None:
        """The file with key and certificate, where the client is known by these."""
        return self.tls.client if self.tls is not None and self.wanted.sasl is None else None


def librdkafka(login: Login) -> dict[str, Any]:
    """For confluent-kafka, kcat and whatever else is made of librdkafka."""
    keys: dict[str, Any] = {"security.protocol": login.wanted.protocol}
    if login.tls is not None:
        keys["ssl.ca.location"] = login.tls.authority
    if login.certificate is not None:
        keys |= {"ssl.certificate.location": login.certificate, "ssl.key.location": login.certificate}
    mechanism = login.wanted.mechanism
    if mechanism is None:
        return keys
    keys["sasl.mechanisms"] = mechanism
    if mechanism == OAUTHBEARER:
        principal = {"sasl.oauthbearer.config": f"principal={login.user}"}
        return keys | {"enable.sasl.oauthbearer.unsecure.jwt": "true"} | principal
    return keys | {"sasl.username": login.user, "sasl.password": login.password}


def java(login: Login) -> dict[str, Any]:
    """For the Java clients and tools."""
    keys: dict[str, Any] = {"security.protocol": login.wanted.protocol}
    if login.tls is not None:
        keys |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": login.tls.authority}
    if login.certificate is not None:
        keys |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": login.certificate}
    mechanism = login.wanted.mechanism
    if mechanism is None:
        return keys
    options = f'unsecuredLoginStringClaim_sub="{login.user}"'
    if mechanism != OAUTHBEARER:
        options = f'username="{login.user}" password="{login.password}"'
    return keys | {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{MODULES[mechanism]} required {options};"}


def spark(login: Login) -> dict[str, Any]:
    """The Java client's, as options of Spark's source and sink."""
    return {f"kafka.{name}": value for name, value in java(login).items()}


def kafka_python(login: Login) -> dict[str, Any]:
    """Keyword arguments of its clients; tokens are made by an object."""
    keys = _underscored(login)
    if login.tls is not None:
        keys["ssl_cafile"] = login.tls.authority
    if login.certificate is not None:
        keys |= {"ssl_certfile": login.certificate, "ssl_keyfile": login.certificate}
    if login.wanted.mechanism == OAUTHBEARER:
        from kafka.net.sasl.oauth import AbstractTokenProvider

        class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
            def token(self) -> str:
                return unsecured_token(login.user)

        keys["sasl_oauth_token_provider"] = Tokens()
    return keys


def aiokafka(login: Login) -> dict[str, Any]:
    """Keyword arguments of its clients; certificates are in an `ssl.SSLContext`."""
    keys = _underscored(login)
    if login.tls is not None:
        import ssl

        context = ssl.create_default_context(cafile=login.tls.authority)
        if login.certificate is not None:
            context.load_cert_chain(login.certificate)
        keys["ssl_context"] = context
    if login.wanted.mechanism == OAUTHBEARER:
        from aiokafka.abc import AbstractTokenProvider

        class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
            async def token(self) -> str:
                return unsecured_token(login.user)

        keys["sasl_oauth_token_provider"] = Tokens()
    return keys


def _underscored(login: Login) -> dict[str, Any]:
    keys: dict[str, Any] = {"security_protocol": login.wanted.protocol}
    mechanism = login.wanted.mechanism
    if mechanism is None:
        return keys
    keys["sasl_mechanism"] = mechanism
    if mechanism == OAUTHBEARER:
        return keys
    return keys | {"sasl_plain_username": login.user, "sasl_plain_password": login.password}


BY_LIBRARY: Final[Mapping[str, Callable[[Login], dict[str, Any]]]] = {
    "confluent-kafka": librdkafka,
    "java": java,
    "spark": spark,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}


def unsecured_token(user: str) -> str:
    """A token without a signature, for `TOKEN_S` from now: brokers for development take it from anyone."""
    import time

    from kpybroker.core.security.sasl.bearer_client import UnsecuredTokens

    return UnsecuredTokens({"sub": user}, TOKEN_S).make(int(time.time() * 1000))
