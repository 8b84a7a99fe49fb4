"""Delegation tokens where an authorizer decides: who may ask for whom, and see whose. Real Kafka 3.9.1 and kpybroker in
one cluster respond alike; and the broker that becomes the controller removes what has expired at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from compat_tests.conftest import Launcher
from compat_tests.overload.raw import Raw
from compat_tests.security.access.acl_callers import creation
from compat_tests.security.logins.test_tokens import PROPERTIES, created, described
from compat_tests.security.logins.token_clients import create, describe, expire, logged_in, renew
from compat_tests.security.pairs import KINDS, Pair, running_pair
from compat_tests.support.waiting import eventually
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.security.acls import Binding, Entry, Pattern, PatternType, Permission
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.create_acls import CreateAclsRequest
from kpybroker.wire.messages.delete_acls import DeleteAclsRequest
from kpybroker.wire.messages.describe_acls import DescribeAclsRequest

USERS: Final = ("alice", "bob", "carol")
TRIES: Final = 20
KEYS: Final = PROPERTIES | {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "delegation.token.expiry.check.interval.ms": "3600000",
}
ANY: Final[dict[str, Any]] = {
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def acl(kind: ResourceType, name: str, who: str, operation: Operation, **options: Any) -> Binding:
    pattern = Pattern(kind, name, options.get("pattern", PatternType.LITERAL))
    return Binding(pattern, Entry(f"User:{who}", "*", operation, options.get("permission", Permission.ALLOW)))


USER, TOKEN = ResourceType.USER, ResourceType.DELEGATION_TOKEN
CREATE, SEE = Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS
STATES: Final[dict[str, list[Binding]]] = {
    "nothing": [],
    "bob asks for carol": [acl(USER, "User:carol", "bob", CREATE)],
    "bob asks for all": [acl(USER, "*", "bob", CREATE)],
    "bob asks by prefix": [acl(USER, "User:", "bob", CREATE, pattern=PatternType.PREFIXED)],
    "a name without its type": [acl(USER, "carol", "bob", CREATE), acl(USER, "carol", "bob", SEE)],
    "bob sees carol's": [acl(USER, "User:carol", "bob", SEE)],
    "bob sees all users'": [acl(USER, "*", "bob", SEE)],
    "seeing is not asking": [acl(USER, "*", "bob", SEE), acl(USER, "User:alice", "carol", CREATE)],
    "bob sees all tokens": [acl(TOKEN, "*", "bob", Operation.DESCRIBE)],
    "denied by token, allowed by user": [
        acl(TOKEN, "*", "bob", Operation.DESCRIBE, permission=Permission.DENY),
        acl(USER, "User:carol", "bob", SEE),
    ],
    "all operations on users": [acl(USER, "User:carol", "bob", Operation.ALL)],
    "deny over allow": [
        acl(USER, "*", "bob", CREATE),
        acl(USER, "User:carol", "bob", CREATE, permission=Permission.DENY),
        acl(TOKEN, "*", "alice", Operation.DESCRIBE, permission=Permission.DENY),
    ],
}


@pytest.fixture(scope="module")
def pair(launcher: Launcher) -> Iterator[Pair]:
    with running_pair(launcher, "token-acls", KEYS) as both:
        yield both


def known(pair: Pair, number: int) -> set[tuple[Any, ...]]:
    """The ACLs that a broker knows."""
    asked = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        **ANY,
    )
    with Raw(pair.plain(number)) as client:
        response = client.ask(asked, 3)
    assert response.error_code == 0, response
    return {
        (resource.resource_name, one.principal, one.operation, one.permission_type)
        for resource in response.resources
        for one in resource.acls
    }


def set_acls(pair: Pair, acls: list[Binding]) -> None:
    """These and no others, on both brokers."""
    delete = DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        **ANY,
    )
    creations = [CreateAclsRequest.AclCreation(**creation(one)) for one in acls]
    with Raw(pair.plain(2)) as client:
        assert client.ask(DeleteAclsRequest(filters=[delete]), 3).filter_results[0].error_code == 0
        assert {one.error_code for one in client.ask(CreateAclsRequest(creations=creations), 3).results} <= {0}
    wanted = {
        (one.pattern.name, one.entry.principal, int(one.entry.operation), int(one.entry.permission)) for one in acls
    }
    for number in KINDS:
        eventually(lambda number=number: known(pair, number) == wanted, "the ACLs are known")  # type: ignore[misc]


def seen(pair: Pair, number: int) -> list[tuple[str, Any]]:
    """What each user may ask for, see, renew and end, on one broker."""
    found: list[tuple[str, Any]] = []
    with ExitStack() as stack:
        clients = {name: stack.enter_context(logged_in(pair.sasl[number], name)) for name in USERS}
        tokens = {}
        for requester, client in clients.items():
            for owner in USERS:
                token = create(client, [("User", "alice")], owner_principal_type="User", owner_principal_name=owner)
                tokens[requester, owner] = token
                found.append((f"{requester} creates for {owner}", created(token)))
        made = {names: token for names, token in tokens.items() if token.error_code == ErrorCode.NONE}
        ids = {token.token_id for token in made.values()}
        for name, client in clients.items():
            for owners in (None, ["alice"], ["bob", "carol"], ["dave"]):
                found.append((f"{name} describes {owners}", described(describe(client, owners), ids)))
        for name, client in clients.items():  # later: a renewal changes what is described
            for names, token in made.items():
                hmac = bytes(token.hmac)
                found.append((f"{name} renews {names}", renew(client, hmac).error_code))
                found.append((f"{name} moves the end of {names}", expire(client, hmac, 600_000).error_code))
        for (_, owner), token in made.items():
            found.append((f"{owner} ends it", expire(clients[owner], bytes(token.hmac)).error_code))
    return found


@pytest.mark.parametrize(
    "state", [pytest.param(state, marks=[pytest.mark.wide] if n % 4 else []) for n, state in enumerate(STATES)]
)
def test_both_brokers_decide_alike(pair: Pair, state: str) -> None:
    set_acls(pair, STATES[state])
    kafka, ours = seen(pair, 1), seen(pair, 2)
    assert len(kafka) > 30
    assert [(theirs, our) for theirs, our in zip(kafka, ours, strict=True) if theirs != our] == []


@pytest.mark.parametrize("permission", list(Permission)[-2:], ids=lambda one: one.name)
def test_an_acl_of_one_token_is_about_that_one(pair: Pair, permission: Permission) -> None:
    """DENY of a token does not take away what an ACL of its owner gives, and ALLOW gives no other token."""
    outcomes = []
    for number in KINDS:
        set_acls(pair, [])
        address = pair.sasl[number]
        with logged_in(address, "alice") as alice, logged_in(address, "bob") as bob:
            tokens = [create(alice), create(alice)]
            acls = [acl(TOKEN, tokens[0].token_id, "bob", Operation.DESCRIBE, permission=permission)]
            if permission is Permission.DENY:
                acls.append(acl(TOKEN, "*", "bob", Operation.DESCRIBE))
            set_acls(pair, acls)
            shown = {one.token_id for one in describe(bob).tokens}
            outcomes.append([token.token_id in shown for token in tokens])
            for token in tokens:
                assert expire(alice, bytes(token.hmac)).error_code == ErrorCode.NONE
    assert outcomes[0] == outcomes[1] == [permission is Permission.ALLOW, permission is Permission.DENY]


@pytest.mark.parametrize("number", [pytest.param(1, marks=pytest.mark.wide), 2])
def test_a_new_controller_removes_expired_tokens_at_once(pair: Pair, number: int) -> None:
    """Both kinds: their next check would be an hour later. The other broker is paused, so that this one is elected."""
    tree, other = pair.cluster.tree, pair.cluster.brokers[3 - number]
    set_acls(pair, [])
    with logged_in(pair.sasl[2], "alice") as alice:
        token = create(alice)
        ended = expire(alice, bytes(token.hmac), 1)
        assert ended.error_code == ErrorCode.NONE
    path = f"/delegation_token/tokens/{token.token_id}"
    eventually(lambda: both_know(pair, token.token_id, ended.expiry_timestamp_ms), "both know when the token ends")
    assert tree.exists(path) is not None
    other.service.pause()
    try:
        tree.delete("/controller")
        eventually(lambda: tree.exists(path) is None, "the token is removed")
        assert pair.cluster.controller() == number
    finally:
        other.service.resume()


def both_know(pair: Pair, token_id: str, expires_at_ms: int) -> bool:
    """A controller that knows an earlier end looks an hour later."""
    for number in KINDS:
        with logged_in(pair.sasl[number], "alice") as alice:
            if (token_id, expires_at_ms) not in {
                (one.token_id, one.expiry_timestamp) for one in describe(alice).tokens
            }:
                return False
    return True
