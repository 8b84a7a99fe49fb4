"""SCRAM logins: what is accepted, and that refusals tell nothing."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import replace

import pytest

from kpybroker.core.authorizer import Principal
from kpybroker.core.security.sasl.mechanism import LoggedIn, LoginFailed
from kpybroker.core.security.sasl.scram_login import ScramServer, TokenLogin
from kpybroker.core.security.scram import (
    SaltForm,
    ScramCredential,
    ScramMechanism,
    client_proof,
    escape_name,
    form_of,
    make_credential,
    salt_of,
    salted_password,
    server_signature,
)

SALT = b"0123456789"
NAMES = {"alice": "secret", "a=b,c": "p,=w"}


def server(mechanism: ScramMechanism = ScramMechanism.SHA_256, iterations: int = 4096) -> ScramServer:
    credentials = {name: make_credential(mechanism, word, SALT, iterations) for name, word in NAMES.items()}
    tokens = {
        "id1": TokenLogin(make_credential(mechanism, "hmac", SALT, 4096), Principal("User", "owner"), 5_000),
    }
    return ScramServer(mechanism, credentials.get, lambda: "server-nonce", b"decoys", tokens.get)


class Client:
    """The client's side, step by step."""

    def __init__(self, used: ScramServer, name: str, password: str, gs2: str = "n,,", extensions: str = "") -> None:
        self.server = used
        self.login = used.begin()
        self.password = password
        self.gs2 = gs2
        self.bare = f"n={escape_name(name)},r=client-nonce{extensions}"
        self.salted = b""
        self.nonce_prefix = ""
        self.auth_message = b""

    def first(self, now_ms: int = 0) -> str:
        challenge = self.login.step((self.gs2 + self.bare).encode(), now_ms)
        assert isinstance(challenge, bytes)
        return challenge.decode()

    def final(self, challenge: str) -> bytes:
        match = re.fullmatch("r=(.*),s=(.*),i=(.*)", challenge)
        assert match is not None
        salt = base64.b64decode(match[2])
        self.salted = salted_password(self.server.mechanism, self.password, salt, int(match[3]))
        without_proof = f"c={base64.b64encode(self.gs2.encode()).decode()},r={self.nonce_prefix}{match[1]}"
        self.auth_message = f"{self.bare},{challenge},{without_proof}".encode()
        proof = client_proof(self.server.mechanism, self.salted, self.auth_message)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def run(self, now_ms: int = 0) -> LoggedIn:
        end = self.login.step(self.final(self.first(now_ms)), now_ms)
        assert isinstance(end, LoggedIn)
        return end


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("name", NAMES)
def test_a_valid_login_ends_with_the_servers_signature(mechanism: ScramMechanism, name: str) -> None:
    client = Client(server(mechanism), name, NAMES[name])
    end = client.run()
    assert end.principal == Principal("User", name)
    assert not end.token_authenticated
    assert end.expires_ms is None
    server_key = make_credential(mechanism, NAMES[name], SALT, 4096).server_key
    signature = server_signature(mechanism, server_key, client.auth_message)
    assert end.reply == b"v=" + base64.b64encode(signature)


def refusal(client: Client) -> tuple[str, str]:
    """(the step that refuses, the reason for the client)"""
    try:
        challenge = client.first()
    except LoginFailed as failed:
        return "first", failed.reason
    with pytest.raises(LoginFailed) as caught:
        client.login.step(client.final(challenge), 0)
    return "final", caught.value.reason


def test_an_unknown_user_is_refused_as_a_wrong_password_is() -> None:
    assert refusal(Client(server(), "alice", "wrong")) == ("final", "")
    assert refusal(Client(server(), "mallory", "secret")) == ("final", "")


def test_an_unknown_user_always_gets_the_same_salt_and_others_another_one() -> None:
    used = server()
    first = Client(used, "mallory", "x").first()
    assert Client(used, "mallory", "y").first() == first
    assert Client(used, "trudy", "x").first() != first
    assert re.fullmatch("r=client-nonceserver-nonce,s=[A-Za-z0-9+/]{35}=,i=4096", first)


def forms(used: ScramServer, names: Iterable[str], extensions: str = "") -> set[SaltForm]:
    """What a stranger sees of those names."""
    firsts = (
        re.fullmatch("r=.*,s=(.*),i=(.*)", Client(used, one, "x", extensions=extensions).first()) for one in names
    )
    return {form_of(ScramCredential(base64.b64decode(first[1]), b"", b"", int(first[2]))) for first in firsts if first}


@pytest.mark.parametrize(
    ("salt", "iterations"),
    [
        (b"", 4096),
        (b"k3ps2v", 8192),
        (b"0q3oz8bb3gqjmg9lpd9cs4fzsv", 4096),
        (b"Zq3oz8bb3gqjmg9lpd9cs", 16384),
        (bytes(range(64)), 4096),
        (bytes(255 - number % 100 for number in range(300)), 5000),
    ],
)
@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_what_a_stranger_sees_of_unknown_users_is_what_is_seen_of_others(
    mechanism: ScramMechanism, salt: bytes, iterations: int
) -> None:
    real = make_credential(mechanism, "secret", salt, iterations)
    used = replace(server(mechanism), credential_of={"alice": real}.get, usual=lambda: form_of(real))
    assert forms(used, ("alice",)) == forms(used, (f"no-{number}" for number in range(50))) == {form_of(real)}


def test_unknown_tokens_look_like_tokens_whatever_users_look_like() -> None:
    used = replace(server(), usual=lambda: SaltForm(64, False, 16384))
    assert forms(used, (f"no-{number}" for number in range(50)), ",tokenauth=true") == {SaltForm()}


def test_salts_of_unknown_users_have_both_lengths_that_true_ones_have() -> None:
    used = server()
    assert {len(used.decoy(f"no-{number}", SaltForm()).salt) for number in range(200)} == {25, 26}
    assert {len(salt_of(number)) for number in (0, 1, 36**25 - 1, 36**25, 2**130 - 1)} == {25, 26}
    assert int(salt_of(2**130 - 1), 36) == 2**130 - 1


def test_a_foreign_authorization_id_is_refused_with_kafkas_text_for_known_and_unknown_users() -> None:
    for name in ("alice", "mallory"):
        step, reason = refusal(Client(server(), name, "secret", gs2="n,a=bob,"))
        assert step == "first"
        assert reason.endswith("authorization id that is different from username")
    assert Client(server(), "alice", "secret", gs2="n,a=alice,").run().principal.name == "alice"


def test_too_few_iterations_are_refused() -> None:
    assert refusal(Client(server(iterations=4095), "alice", "secret")) == ("first", "")


@pytest.mark.parametrize(
    "first", [b"", b"\xff", b"y,,n=alice,r=x", b"p=tls-unique,,n=alice,r=x", b"n,,n=a=b,r=x", b"n,,n=alice", b"n,,r=x"]
)
def test_other_first_messages_are_refused(first: bytes) -> None:
    with pytest.raises(LoginFailed) as caught:
        server().begin().step(first, 0)
    assert caught.value.reason == ""


@pytest.mark.parametrize("final", [b"", b"\xff", b"c=biws,r=client-nonce,p=YQ==", b"c=biws,r=client-nonceserver-nonce"])
def test_other_final_messages_are_refused(final: bytes) -> None:
    client = Client(server(), "alice", "secret")
    client.first()
    with pytest.raises(LoginFailed):
        client.login.step(final, 0)


def test_a_proof_is_good_for_one_login() -> None:
    used = server()
    client = Client(used, "alice", "secret")
    final = client.final(client.first())
    client.login.step(final, 0)
    with pytest.raises(LoginFailed):
        client.login.step(final, 0)


def test_librdkafka_before_2_6_1_repeats_its_nonce() -> None:
    client = Client(server(), "alice", "secret")
    client.nonce_prefix = "client-nonce"
    assert client.run().principal.name == "alice"
    other = Client(server(), "alice", "secret")
    other.nonce_prefix = "r"
    assert other.run().principal.name == "alice"


@pytest.mark.parametrize("nonce", ["server-nonce", "client-nonce", "xclient-nonceserver-nonc", "other-server-nonce"])
def test_a_nonce_without_both_parts_is_refused(nonce: str) -> None:
    client = Client(server(), "alice", "secret")
    challenge = client.first().replace("client-nonceserver-nonce", nonce)
    with pytest.raises(LoginFailed):
        client.login.step(client.final(challenge), 0)


def test_unknown_extensions_are_ignored() -> None:
    assert Client(server(), "alice", "secret", extensions=",x=y").run().principal.name == "alice"


def test_a_delegation_token_logs_its_owner_in_until_it_expires() -> None:
    end = Client(server(), "id1", "hmac", extensions=",tokenauth=true").run(now_ms=4_999)
    assert (end.principal.name, end.principal.token_authenticated, end.expires_ms) == ("owner", True, 5_000)
    late = Client(server(), "id1", "hmac", extensions=",tokenauth=true")
    with pytest.raises(LoginFailed):
        late.run(now_ms=5_000)


def test_a_token_is_no_user_and_a_user_no_token() -> None:
    assert refusal(Client(server(), "id1", "hmac")) == ("final", "")
    assert refusal(Client(server(), "alice", "secret", extensions=",tokenauth=true")) == ("final", "")
