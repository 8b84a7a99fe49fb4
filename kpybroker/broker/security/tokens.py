"""Delegation tokens: kept in the tree, known to every broker, usable as SCRAM credentials.

Kafka's `DelegationTokenManagerZk` with its ``DelegationTokenCache``. A token is a node below
`/delegation_token/tokens`; a change is written there and announced below `/delegation_token/token_changes`. The broker
that makes a change applies it to its own cache before it responds. The controller removes expired tokens.

The SCRAM credential of a token is computed at the first login with it, since that takes milliseconds.
"""

from __future__ import annotations

import logging
import secrets
import uuid
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import trio

from kpybroker.broker.security.notifications import Notifications, Subject, submit
from kpybroker.coordination.tree import create_recursive
from kpybroker.core import tree as t
from kpybroker.core.security import tokens as rules
from kpybroker.core.security.sasl.scram_login import TokenLogin
from kpybroker.core.security.scram import (
    BY_NAME,
    MIN_ITERATIONS,
    SALT_BITS,
    ScramCredential,
    make_credential,
    salt_of,
)
from kpybroker.core.security.secret import Secret
from kpybroker.core.security.tokens import Lifetimes, Token
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.map_order import java_properties_order

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.config.config_lookup import ConfigLookup
    from kpybroker.core.authorizer import Principal

logger = logging.getLogger("kafka.server.DelegationTokenManagerZk")

SECRET_KEY: Final = "delegation.token.secret.key"
MASTER_KEY: Final = "delegation.token.master.key"
NextTerm = Callable[[int | None], Awaitable[int | None]]
READS_PER_BATCH: Final = 500


def secret_key(config: ConfigLookup) -> Secret | None:
    """The key that signs tokens; None where the cluster has none, which turns delegation tokens off."""
    value = config.get(SECRET_KEY)
    if value is None:
        value = config.get(MASTER_KEY)
    return Secret(str(value)) if value else None


@dataclass(slots=True)
class _Known:
    """A token of the cache. `credentials` are by mechanism, filled by logins."""

    token: Token
    hmac: bytes = field(repr=False)
    credentials: dict[str, ScramCredential] = field(default_factory=dict, repr=False)


class DelegationTokens:
    """Life: `start` once the tree is open, then until the broker stops. Methods raise KafkaError and TreeError."""

    def __init__(self, host: Host, key: Secret, next_term: NextTerm) -> None:
        """`next_term`: as that of the controller."""
        self._host = host
        self._key = key
        self._next_term = next_term
        self._known: dict[str, _Known] = {}
        self._by_hmac: dict[bytes, str] = {}
        self._changing = trio.Lock()
        subject = Subject(
            znodes.DELEGATION_TOKEN_CHANGES, znodes.TOKEN_CHANGE_PREFIX, self._on_notification, self._load
        )
        self._notifications = Notifications(host, subject)

    async def start(self) -> None:
        """Read all tokens and watch for changes. To be called before clients are served."""
        await create_recursive(self._host.tree, znodes.DELEGATION_TOKENS, fail_if_exists=False)
        await self._notifications.start()
        self._host.spawn("delete-expired-tokens", self._remove_expired_regularly)

    # --- look-ups

    def token_login(self, mechanism: str, token_id: str) -> TokenLogin | None:
        """The token as a SCRAM credential; None for an unknown one."""
        known = self._known.get(token_id)
        if known is None:
            return None
        credential = known.credentials.get(mechanism)
        if credential is None:
            salt = salt_of(secrets.randbits(SALT_BITS))
            password = rules.password_of(known.hmac)
            credential = make_credential(BY_NAME[mechanism], password, salt, MIN_ITERATIONS)
            known.credentials[mechanism] = credential
        return TokenLogin(credential, known.token.owner, known.token.expiry_timestamp_ms)

    def tokens(self, is_wanted: Callable[[Token], bool]) -> list[tuple[Token, bytes]]:
        """The wanted tokens with their HMACs, in the order of Kafka's map, a ConcurrentHashMap."""
        known = [self._known[token_id] for token_id in java_properties_order(list(self._known))]
        return [(one.token, one.hmac) for one in known if is_wanted(one.token)]

    # --- changes

    async def create(
        self, owner: Principal, requester: Principal, renewers: tuple[Principal, ...], max_lifetime_ms: int
    ) -> tuple[Token, bytes]:
        """A new token and its HMAC."""
        token_id = znodes.encode_uuid(uuid.UUID(int=self._host.random.getrandbits(128), version=4).bytes)
        people = owner, requester, renewers
        async with self._changing:
            token = rules.new_token(token_id, people, max_lifetime_ms, self._lifetimes, self._host.clock.time_ms())
            await self._write(token)
        logger.info("Created a delegation token: %s for owner: %s", token_id, owner)
        return token, rules.hmac_of(self._key, token_id)

    async def renew(self, principal: Principal, token_hmac: bytes, period_ms: int) -> int:
        """Move the expiry of the token forward, and return it."""
        async with self._changing:
            token = self._of_hmac(token_hmac)
            token = rules.renewed(token, principal, period_ms, self._lifetimes, self._host.clock.time_ms())
            await self._write(token)
        logger.info("Delegation token renewed for token: %s for owner: %s", token.token_id, token.owner)
        return token.expiry_timestamp_ms

    async def expire(self, principal: Principal, token_hmac: bytes, period_ms: int) -> int:
        """Move the expiry of the token, or end it now; return when it ends."""
        now_ms = self._host.clock.time_ms()
        async with self._changing:
            token = self._of_hmac(token_hmac)
            changed = rules.expired(token, principal, period_ms, now_ms)
            if changed is None:
                await self._remove(token.token_id)
            else:
                await self._write(changed)
        logger.info("Token expired for token: %s for owner: %s", token.token_id, token.owner)
        return now_ms if changed is None else changed.expiry_timestamp_ms

    async def remove_expired(self) -> None:
        """Remove the tokens that can be used no more."""
        async with self._changing:
            now_ms = self._host.clock.time_ms()
            for known in list(self._known.values()):
                if known.token.is_expired(now_ms):
                    token = known.token
                    logger.info("Delegation token expired for token: %s for owner: %s", token.token_id, token.owner)
                    await self._remove(token.token_id)

    async def _remove_expired_regularly(self) -> None:
        """At once when this broker becomes the controller, and regularly while it is: `onControllerFailover`."""
        term: int | None = None
        while True:
            interval_ms = self._host.config.get_int("delegation.token.expiry.check.interval.ms")
            with nullcontext() if term is None else self._host.clock.pausing(interval_ms / 1000):
                term = await self._next_term(term)
            if term is not None:
                try:
                    await self.remove_expired()
                except (t.SessionExpired, t.ConnectionLoss) as error:
                    logger.warning("Expired delegation tokens are removed later: %r", error)

    @property
    def _lifetimes(self) -> Lifetimes:
        config = self._host.config
        return Lifetimes(
            config.get_int("delegation.token.max.lifetime.ms"), config.get_int("delegation.token.expiry.time.ms")
        )

    def _of_hmac(self, token_hmac: bytes) -> Token:
        token_id = self._by_hmac.get(token_hmac)
        if token_id is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return self._known[token_id].token

    # --- the tree and the cache

    async def _write(self, token: Token) -> None:
        host, path = self._host, znodes.delegation_token_path(token.token_id)
        data = znodes.encode_delegation_token(rules.to_stored(token))
        (result,) = await submit(host, [t.SetData(path, data)])
        if isinstance(result, t.NoNode):
            await create_recursive(host.tree, path, data)
        self._keep(token)
        await self._notify(token.token_id)

    async def _remove(self, token_id: str) -> None:
        await submit(self._host, [t.Delete(znodes.delegation_token_path(token_id))])
        self._forget(token_id)
        await self._notify(token_id)

    async def _notify(self, token_id: str) -> None:
        change = t.Create(znodes.delegation_token_change_path(), token_id.encode(), sequential=True)
        await submit(self._host, [change])

    async def _on_notification(self, data: bytes | None) -> None:
        token_id = (data or b"").decode()
        if not token_id or "/" in token_id:
            raise ValueError("it names no token")
        await self._read([token_id])

    async def _load(self) -> None:
        (listed,) = await submit(self._host, [t.Children(znodes.DELEGATION_TOKENS)])
        names = listed.names if isinstance(listed, t.NodeChildren) else ()
        logger.info("Loading the token cache. Total token count: %d", len(names))
        for gone in self._known.keys() - set(names):
            self._forget(gone)
        await self._read(list(names))

    async def _read(self, token_ids: list[str]) -> None:
        for start in range(0, len(token_ids), READS_PER_BATCH):
            batch = token_ids[start : start + READS_PER_BATCH]
            async with self._changing:  # what is read later must be kept later
                found = await submit(self._host, [t.Get(znodes.delegation_token_path(one)) for one in batch])
                for token_id, node in zip(batch, found, strict=True):
                    self._take(token_id, node.data if isinstance(node, t.NodeData) else None)

    def _take(self, token_id: str, data: bytes | None) -> None:
        """What the tree holds for a token; None: nothing."""
        token = None
        if data is not None:
            try:
                token = rules.from_stored(znodes.decode_delegation_token(data))
            except ValueError as error:
                logger.error("Error while getting Token for tokenId: %s: %s", ascii(token_id), error)
        if token is not None and token.token_id == token_id:
            self._keep(token)
        else:
            self._forget(token_id)

    def _keep(self, token: Token) -> None:
        known = self._known.get(token.token_id)
        if known is not None:
            known.token = token
            return
        token_hmac = rules.hmac_of(self._key, token.token_id)
        self._known[token.token_id] = _Known(token, token_hmac)
        self._by_hmac[token_hmac] = token.token_id

    def _forget(self, token_id: str) -> None:
        known = self._known.pop(token_id, None)
        if known is not None:
            del self._by_hmac[known.hmac]
