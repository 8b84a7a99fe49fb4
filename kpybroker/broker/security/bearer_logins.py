"""How this broker logs in at others by OAUTHBEARER: where its tokens come from.

- From `sasl.oauthbearer.token.endpoint.url`, as Kafka's `OAuthBearerLoginCallbackHandler`: a file, which is read at
  each login, or an HTTPS endpoint that gives tokens for a client id and its secret (client credentials, RFC 6749
  section 4.4). They are in keys of their own, as in Kafka since 4.1, else in options of the JAAS module.
- Made here without a signature, where the JAAS module has options `unsecuredLogin...` and there is no URL.

All of this runs in the threads of logins. No token and no secret is in an error or a log.
"""

from __future__ import annotations

import base64
import json
import logging
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kpybroker.broker.security.login_settings import LoginConfigError, PeerLoginFailed
from kpybroker.broker.security.oauthbearer import EXTRA, MODULE, trusted_file
from kpybroker.config.jaas import JAAS, listener_key, login_modules, mechanism_key
from kpybroker.config.values import ConfigError
from kpybroker.core.security.sasl.bearer_client import (
    CONFIRMED,
    EXTENSION,
    UNSECURED_EXTENSION,
    extensions_of,
    first_message,
    is_token,
    lifetime_of,
    unsecured_tokens,
)
from kpybroker.core.security.sasl.oauthbearer import NAME
from kpybroker.core.security.secret import Secret

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig

logger = logging.getLogger("kafka.common.security.oauthbearer")

URL: Final = "sasl.oauthbearer.token.endpoint.url"
CALLBACK: Final = "sasl.login.callback.handler.class"
ENDPOINT_CALLBACKS: Final = frozenset(
    {
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    }
)
UNSECURED_CALLBACK: Final = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
)
CREDENTIALS: Final = {
    "clientId": "sasl.oauthbearer.client.credentials.client.id",
    "clientSecret": "sasl.oauthbearer.client.credentials.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
"""Option of the JAAS module -> the key that takes its place where it is set (Kafka's ``ConfigOrJaas``)."""
RENEWED_AFTER: Final = 0.8
"""Of a token's lifetime: Kafka's `sasl.login.refresh.window.factor`."""
TIMEOUT_S: Final = 10.0
RESPONSE_BYTES_MAX: Final = 1 << 20
SOURCES_MAX: Final = 16

Fetch = Callable[[], str]
"""A token, from where tokens come from; may take a while. Raises PeerLoginFailed."""


class BearerLogin:
    """One login (a `client_logins.ClientLogin`)."""

    def __init__(self, token: Fetch, extensions: Mapping[str, str]) -> None:
        self._token = token
        self._extensions = extensions

    def first(self) -> bytes:
        """The message with the token."""
        return first_message(self._token(), self._extensions)

    def next(self, challenge: bytes) -> bytes | None:
        """None at the end. A challenge means that the token is refused: confirm, and the error follows."""
        return CONFIRMED if challenge else None


class KeptToken:
    """The token of an endpoint, used for most of its lifetime. Its methods may be called in several threads."""

    def __init__(self, fetch: Fetch, now_ms: Callable[[], int]) -> None:
        self._fetch = fetch
        self._now_ms = now_ms
        self._reading = threading.Lock()
        self._token = Secret("")
        self._renew_at_ms = self._expires_ms = 0

    def get(self) -> str:
        """A `Fetch`. While the endpoint cannot be reached, the token that is there is used until it expires."""
        with self._reading:
            now_ms = self._now_ms()
            if now_ms >= self._renew_at_ms:
                try:
                    self._keep(self._fetch(), now_ms)
                except PeerLoginFailed as error:
                    if now_ms >= self._expires_ms:
                        raise
                    logger.warning("The token of OAUTHBEARER cannot be renewed yet: %s", error)
            return self._token.reveal()

    def _keep(self, token: str, now_ms: int) -> None:
        lifetime = lifetime_of(token)
        self._token = Secret(token)
        self._expires_ms = now_ms if lifetime is None else lifetime.expires_ms
        self._renew_at_ms = now_ms + int(RENEWED_AFTER * (self._expires_ms - now_ms))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where tokens are, and what this broker shows there. `ca_file`: as `jwks.reader`."""

    url: str
    ca_file: str | None
    client_id: str
    client_secret: Secret
    scope: str


def wall_clock_ms() -> int:
    """Tokens name times of the wall clock."""
    return int(time.time() * 1000)


@lru_cache(SOURCES_MAX)
def kept_token(endpoint: Endpoint) -> KeptToken:
    """The one of this process: all logins with the same credentials share it. Raises OSError for the CA file."""
    from kpybroker.broker.security.jwks import https_opener

    return KeptToken(partial(_from_https, https_opener(endpoint.ca_file), endpoint), wall_clock_ms)


def initiator(config: BrokerConfig, listener: str) -> Callable[[str], BearerLogin]:
    """(host of the other broker) -> a login at its listener of this name. Raises LoginConfigError."""
    options = {**_options(config, listener), **_credentials(config, listener)}
    callback = config.effective.get(mechanism_key(listener, NAME, CALLBACK))
    url = config.effective.get(mechanism_key(listener, NAME, URL)) or config.get(listener_key(listener, URL))
    if callback not in (None, UNSECURED_CALLBACK, *ENDPOINT_CALLBACKS):
        key = mechanism_key(listener, NAME, CALLBACK)
        raise LoginConfigError(
            f"{key}={callback} is a Java class, and there is no JVM here to load it",
            f"remove {key}, and set {URL} to where tokens are",
        )
    try:
        if callback in ENDPOINT_CALLBACKS or (callback is None and url):
            fetch, extensions = _of_endpoint(str(url or ""), options), extensions_of(options, EXTENSION)
        else:
            fetch, extensions = _unsecured(listener, options), extensions_of(options, UNSECURED_EXTENSION)
    except ValueError as error:
        raise LoginConfigError(f"OAUTHBEARER on listener {listener}: {error}", f"correct {_key(listener)}") from None
    return lambda host: BearerLogin(fetch, extensions)


def _credentials(config: BrokerConfig, listener: str) -> dict[str, str]:
    """The options that keys have in their place."""
    found = {}
    for option, key in CREDENTIALS.items():
        text = config.effective.get(mechanism_key(listener, NAME, key)) or config.get(listener_key(listener, key))
        if text is not None:
            found[option] = str(text)
    return found


def _key(listener: str) -> str:
    return mechanism_key(listener, NAME, JAAS)


def _options(config: BrokerConfig, listener: str) -> Mapping[str, str]:
    """Of all its login modules; the first one decides."""
    try:
        modules = login_modules(config, listener, NAME)
    except ConfigError as error:
        raise LoginConfigError(str(error), f"set {_key(listener)}={MODULE} required ...;") from error
    options: dict[str, str] = {}
    for module in modules:
        if module.name == MODULE:
            options = {**module.options, **options}
    return options


def _unsecured(listener: str, options: Mapping[str, str]) -> Fetch:
    tokens = unsecured_tokens(options)
    if tokens is None:
        raise LoginConfigError(
            f"brokers log in with OAUTHBEARER on listener {listener}, but there is no token for that",
            f"set {URL}; or, for unsecured tokens, "
            f'{_key(listener)}={MODULE} required unsecuredLoginStringClaim_sub="broker";',
        )
    return lambda: tokens.make(wall_clock_ms())


def _of_endpoint(url: str, options: Mapping[str, str]) -> Fetch:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        fetch = partial(_from_file, Path(urllib.request.url2pathname(parts.path)))
        try:
            fetch()
        except PeerLoginFailed as error:
            raise LoginConfigError(f"{URL}: {error}", f"set {URL} to a file with a token") from None
        return fetch
    if parts.scheme != "https" or not parts.hostname:
        raise LoginConfigError(f"{URL} is no file: or https: URL", f"set {URL}=https://... or file:///...")
    client_id, client_secret = options.get("clientId", ""), options.get("clientSecret", "")
    if not client_id or not client_secret:
        raise ValueError(
            f"neither {CREDENTIALS['clientId']} and {CREDENTIALS['clientSecret']} are set, nor the options clientId "
            "and clientSecret of the JAAS module"
        )
    endpoint = Endpoint(url, trusted_file(options), client_id, Secret(client_secret), options.get("scope", ""))
    try:
        return kept_token(endpoint).get
    except ImportError as error:
        raise LoginConfigError(f"tokens of OAUTHBEARER need the package {error.name}", EXTRA) from error
    except OSError as error:
        raise ValueError(f"the certificates in {endpoint.ca_file} cannot be read: {error.strerror}") from None


def _from_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return _checked(file.read(RESPONSE_BYTES_MAX).decode("ascii", "replace").strip(), str(path))
    except OSError as error:
        raise PeerLoginFailed(f"{path}: {error.strerror}") from None


def _from_https(opener: urllib.request.OpenerDirector, endpoint: Endpoint) -> str:
    place = urllib.parse.urlsplit(endpoint.url).hostname or ""
    form = {"grant_type": "client_credentials", **({"scope": endpoint.scope} if endpoint.scope else {})}
    credentials = base64.b64encode(f"{endpoint.client_id}:{endpoint.client_secret.reveal()}".encode()).decode()
    headers = {"Authorization": f"Basic {credentials}", "Accept": "application/json"}
    request = urllib.request.Request(endpoint.url, urllib.parse.urlencode(form).encode(), headers)
    try:
        with opener.open(request, timeout=TIMEOUT_S) as response:
            found: Any = json.loads(response.read(RESPONSE_BYTES_MAX))
    except urllib.error.HTTPError as error:
        raise PeerLoginFailed(f"{place} responded to the request for a token with status {error.code}") from None
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise PeerLoginFailed(f"{place} cannot be asked for a token: {reason}") from None
    except (ValueError, RecursionError):
        raise PeerLoginFailed(f"{place} responded to the request for a token with no JSON") from None
    token = found.get("access_token") if isinstance(found, dict) else None
    return _checked(token if isinstance(token, str) else "", place)


def _checked(token: str, place: str) -> str:
    if not is_token(token):
        raise PeerLoginFailed(f"{place} has no valid token")
    return token
