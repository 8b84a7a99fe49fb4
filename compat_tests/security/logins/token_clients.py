"""Raw clients of delegation tokens: they log in by PLAIN or with a token, and make the requests of KIP-48."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any

from compat_tests.overload.raw import Raw
from compat_tests.security.pairs import Address
from kpybroker.core.security.scram import BY_NAME, client_proof, salted_password
from kpybroker.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from kpybroker.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from kpybroker.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kpybroker.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeRequest


def logged_in(address: Address, name: str) -> Raw:
    """By PLAIN."""
    client = Raw(address)
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    response = client.ask(SaslAuthenticateRequest(auth_bytes=f"\0{name}\0{name}-secret".encode()), 2)
    assert response.error_code == 0, response
    return client


def token_login(address: Address, mechanism: str, token_id: str, hmac: bytes) -> tuple[Raw, Any]:
    """By SCRAM with a token; the client, and the last response of the login."""
    client = Raw(address)
    assert client.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code == 0
    bare = f"n={token_id},r=nonce,tokenauth=true"
    challenge = client.ask(SaslAuthenticateRequest(auth_bytes=f"n,,{bare}".encode()), 2)
    if challenge.error_code:
        return client, challenge
    text = bytes(challenge.auth_bytes).decode()
    match = re.fullmatch("r=(.*),s=(.*),i=(.*)", text)
    assert match is not None, text
    hash_ = BY_NAME[mechanism]
    salted = salted_password(hash_, base64.b64encode(hmac).decode(), base64.b64decode(match[2]), int(match[3]))
    without_proof = f"c=biws,r={match[1]}"
    proof = base64.b64encode(client_proof(hash_, salted, f"{bare},{text},{without_proof}".encode())).decode()
    return client, client.ask(SaslAuthenticateRequest(auth_bytes=f"{without_proof},p={proof}".encode()), 2)


def create(client: Raw, renewers: Sequence[tuple[str, str]] = (), version: int = 3, **fields: Any) -> Any:
    named = [
        CreateDelegationTokenRequest.CreatableRenewers(principal_type=kind, principal_name=name)
        for kind, name in renewers
    ]
    return client.ask(CreateDelegationTokenRequest(renewers=named, **fields), version)


def renew(client: Raw, hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    return client.ask(RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms), version)


def expire(client: Raw, hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    return client.ask(ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms), version)


def describe(client: Raw, owners: Sequence[str] | None = None, version: int = 3) -> Any:
    """`owners` are names of users; None: all."""
    asked = None
    if owners is not None:
        owner = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
        asked = [owner(principal_type="User", principal_name=name) for name in owners]
    return client.ask(DescribeDelegationTokenRequest(owners=asked), version)
