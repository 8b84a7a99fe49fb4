"""Signed bearer tokens: signatures, checked with the keys of a JWKS document (RFC 7517) in a file or behind HTTPS.

Kafka's `OAuthBearerValidatorCallbackHandler` with its ``RefreshingHttpsJwks``. All of this runs in the threads of
logins, never in the loop. Rules:

- `ALGORITHMS` is a list of what is allowed, all asymmetric: a token cannot choose `none`, nor sign with a public key.
- Keys are read again when they are older than `refresh_s`. If that fails, the old ones are used, and the next attempt
  waits for the back-off. One thread reads, and others use what is there.
- A token with a key id that is not in the document causes one read, at most every `UNKNOWN_KEY_PAUSE_S`: this is how
  new keys are found, and a client that makes up ids cannot cause more.
- The document is at most `DOCUMENT_BYTES_MAX`; redirects are not followed.
"""

from __future__ import annotations

import json
import logging
import ssl
import threading
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import IO, Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from joserfc import jwk, jws
from joserfc.errors import JoseError, SecurityWarning

from kpybroker.core.security.sasl.bearer_tokens import Expected, check_claims, decode_part
from kpybroker.core.security.sasl.oauthbearer import BearerToken, TokenRefused

logger = logging.getLogger("kafka.common.security.oauthbearer")

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "Ed25519", "EdDSA"),
)
KEY_TYPES: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
"""The start of an algorithm's name -> the type of key it needs."""
RSA_BITS_MIN: Final = 2048
DOCUMENT_BYTES_MAX: Final = 1 << 20
KEYS_TRIED_MAX: Final = 8
"""Of a token without a key id."""
READ_TIMEOUT_S: Final = 10.0
UNKNOWN_KEY_PAUSE_S: Final = 10.0
UNKNOWN_KEY_WAITERS_MAX: Final = 3
"""Logins that wait while the document is read for an unknown key id; others are refused, so that threads stay free."""

warnings.filterwarnings("ignore", "EdDSA is deprecated", SecurityWarning)  # by a name that issuers do not use yet

Key = jwk.RSAKey | jwk.ECKey | jwk.OKPKey
Read = Callable[[], bytes]


class JwksUnavailable(Exception):
    """The document cannot be read. The message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often the document is read, in seconds: `sasl.oauthbearer.jwks.endpoint.refresh.ms` and its back-offs."""

    refresh_s: float
    backoff_s: float
    backoff_max_s: float


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is an error."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        """Never followed."""
        return


def reader(url: str, ca_file: str | None = None) -> Read:
    """What reads the document at a `file:` or `https:` URL. Raises ValueError for other URLs, OSError for the CA file.

    `ca_file`: certificates in PEM that an `https:` server must have been signed by; None: the machine's.
    """
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        path = Path(url2pathname(parts.path))
        return lambda: _read_file(path)
    if parts.scheme != "https" or not parts.hostname:
        raise ValueError("not a file: or https: URL")
    opener = https_opener(ca_file)
    return lambda: _read_https(opener, url)


def https_opener(ca_file: str | None) -> urllib.request.OpenerDirector:
    """What opens HTTPS URLs and follows no redirect. `ca_file`: as `reader`. Raises OSError."""
    context = ssl.create_default_context(cafile=ca_file)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # the default of Python 3.13, and never Java's
    return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), NoRedirects)


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(DOCUMENT_BYTES_MAX + 1)
    except OSError as error:
        raise JwksUnavailable(f"{path}: {error.strerror}") from error


def _read_https(opener: urllib.request.OpenerDirector, url: str) -> bytes:
    place = urlsplit(url).hostname
    try:
        with opener.open(url, timeout=READ_TIMEOUT_S) as response:
            data: bytes = response.read(DOCUMENT_BYTES_MAX + 1)
            return data
    except urllib.error.HTTPError as error:
        raise JwksUnavailable(f"{place} responded with status {error.code}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise JwksUnavailable(f"{place} cannot be read: {reason}") from error


def parse_keys(document: bytes) -> list[Key]:
    """The public keys of a document that can verify signatures. Raises JwksUnavailable where there is none."""
    if len(document) > DOCUMENT_BYTES_MAX:
        raise JwksUnavailable(f"the document has more than {DOCUMENT_BYTES_MAX} bytes")
    try:
        found = json.loads(document)["keys"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise JwksUnavailable("the document is not a JWKS: a JSON object with keys expected") from None
    keys = [key for one in found if (key := _key(one)) is not None] if isinstance(found, list) else []
    if not keys:
        raise JwksUnavailable("the document has no key that can verify signatures")
    return keys


def _key(values: Any) -> Key | None:
    """None for a key of another use or kind, or one that is too weak."""
    if not isinstance(values, dict) or values.get("use", "sig") != "sig":
        return None
    try:
        key = jwk.import_key(values)
    except (JoseError, ValueError, TypeError, KeyError) as error:
        logger.warning("A key of the JWKS cannot be used: %s", type(error).__name__)
        return None
    if isinstance(key, jwk.RSAKey) and key.raw_value.key_size < RSA_BITS_MIN:
        logger.warning("A key of the JWKS has %d bits; %d are needed", key.raw_value.key_size, RSA_BITS_MIN)
        return None
    return key if isinstance(key, jwk.RSAKey | jwk.ECKey | jwk.OKPKey) else None


class Jwks:
    """The keys of one document. All methods may be called in several threads."""

    def __init__(self, read: Read, pace: Pace, now: Callable[[], float] = monotonic) -> None:
        self._read = read
        self._pace = pace
        self._now = now
        self._keys: Sequence[Key] = ()
        self._reading = threading.Lock()
        self._may_wait = threading.Semaphore(UNKNOWN_KEY_WAITERS_MAX)
        self._due = -1.0
        self._unknown_key_due = -1.0
        self._failures = 0

    def candidates(self, key_id: str | None, key_type: str) -> list[Key]:
        """The keys that may have made a signature; none if there is no such key, also after reading again."""
        self._refresh()
        found = self._of(key_id, key_type)
        if not found and key_id is not None and self._read_for_unknown_key():
            found = self._of(key_id, key_type)
        return found[:KEYS_TRIED_MAX]

    def load(self) -> None:
        """Read the document now. Raises JwksUnavailable."""
        with self._reading:
            self._load()

    def _of(self, key_id: str | None, key_type: str) -> list[Key]:
        return [key for key in self._keys if key.key_type == key_type and (key_id is None or key.kid == key_id)]

    def _refresh(self) -> None:
        """Read again if it is time. Without any keys, wait for the thread that reads."""
        if self._now() < self._due or not self._reading.acquire(blocking=not self._keys):
            return
        try:
            if self._now() >= self._due:
                self._try_load()
        finally:
            self._reading.release()

    def _read_for_unknown_key(self) -> bool:
        """True if the document was read, now or by another thread while this one waited."""
        asked = self._now()
        if asked < self._unknown_key_due or not self._may_wait.acquire(blocking=False):
            return False
        try:
            with self._reading:
                if self._now() < self._unknown_key_due:
                    return asked <= self._unknown_key_due - UNKNOWN_KEY_PAUSE_S
                self._try_load()
                self._unknown_key_due = self._now() + UNKNOWN_KEY_PAUSE_S
        finally:
            self._may_wait.release()
        return True

    def _try_load(self) -> None:
        try:
            self._load()
        except JwksUnavailable as error:
            backoff_s = min(self._pace.backoff_s * 2**self._failures, self._pace.backoff_max_s)
            self._failures = min(self._failures + 1, 30)
            self._due = self._now() + backoff_s
            logger.error("The JWKS of OAUTHBEARER cannot be read, next attempt in %.1f s: %s", backoff_s, error)

    def _load(self) -> None:
        self._keys = parse_keys(self._read())
        self._failures = 0
        self._due = self._now() + self._pace.refresh_s


class SignedValidator:
    """Tokens that a key of the document has signed (a `Validator`)."""

    def __init__(self, jwks: Jwks, expected: Expected) -> None:
        self._jwks = jwks
        self._expected = expected

    def validate(self, token: str, now_ms: int) -> BearerToken:
        """As `Validator.validate`."""
        header = decode_part(token.partition(".")[0])
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS:
            raise TokenRefused("the algorithm of the token is not allowed")
        if key_id is not None and not isinstance(key_id, str):
            raise TokenRefused("the key id of the token is no text")
        keys = self._jwks.candidates(key_id, KEY_TYPES[algorithm[:2]])
        if not keys:
            raise TokenRefused("the JWKS has no key for the token")
        return check_claims(_verified(token, algorithm, keys), self._expected, now_ms)


def _verified(token: str, algorithm: str, keys: Sequence[Key]) -> Mapping[str, Any]:
    """The claims of a token that one of the keys has signed. Raises TokenRefused."""
    for key in keys:
        try:
            jws.deserialize_compact(token, key, algorithms=[algorithm])
        except (JoseError, ValueError, TypeError):
            continue
        return decode_part(token.split(".")[1])
    raise TokenRefused("the signature of the token is not valid")
