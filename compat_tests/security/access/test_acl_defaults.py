"""`allow.everyone.if.no.acl.found` and `super.users`: who no ACL speaks of, and whom none concerns.

Real Kafka 3.9.1 and kpybroker respond to and audit every request of the matrix alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from compat_tests.security.access.acl_callers import ADMIN_HOST, PRINCIPAL, TYPES
from compat_tests.security.access.acl_matrix import Side, asking, differences, running_sides
from compat_tests.security.access.acl_requests import GROUP, TOPIC, TXN, all_requests
from kpybroker.core.authorizer import CLUSTER_NAME, Operation, ResourceType
from kpybroker.core.security.acls import Binding, Entry, Pattern, PatternType, Permission

REQUESTS: Final = all_requests()
CELLS_MIN: Final = 600
CAROL: Final = Entry("User:carol", "*", Operation.DESCRIBE, Permission.ALLOW)
"""Someone else: her ACL is one that is found."""
ADMIN: Final = Entry(PRINCIPAL, ADMIN_HOST, Operation.ALL, Permission.ALLOW)
CLUSTER: Final = Pattern(ResourceType.CLUSTER, CLUSTER_NAME)


@dataclass(frozen=True, slots=True)
class Guest:
    """A client at an address of its own."""

    host: str

    def __str__(self) -> str:
        return self.host


def literal(kind: ResourceType, name: str) -> Pattern:
    return Pattern(kind, name)


def prefixed(kind: ResourceType) -> Pattern:
    return Pattern(kind, "acl-", PatternType.PREFIXED)


def by_guest(number: int) -> Guest:
    return Guest(f"127.9.{number}.1")


def entry_of(number: int, operation: Operation, permission: Permission) -> Entry:
    return Entry(PRINCIPAL, by_guest(number).host, operation, permission)


def states() -> dict[str, list[Binding]]:
    """What is in the tree while the guest asks."""
    topic, group, txn = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
    found: dict[str, list[Binding]] = {
        "nothing": [],
        "another topic": [Binding(literal(topic, "acl-missing"), CAROL)],
        "topic": [Binding(literal(topic, TOPIC), CAROL)],
        "topics by prefix": [Binding(prefixed(topic), CAROL)],
        "all topics": [Binding(literal(topic, "*"), CAROL)],
        "group": [Binding(literal(group, GROUP), CAROL)],
        "all groups": [Binding(literal(group, "*"), CAROL)],
        "transactional id": [Binding(literal(txn, TXN), CAROL)],
        "cluster": [Binding(CLUSTER, CAROL), Binding(CLUSTER, ADMIN)],
        "everything": [Binding(literal(kind, "*"), CAROL) for kind in TYPES if kind is not ResourceType.CLUSTER]
        + [Binding(CLUSTER, CAROL), Binding(CLUSTER, ADMIN)],
    }
    own = [
        ("own topic", prefixed(topic), Operation.DESCRIBE, Permission.ALLOW),
        ("topic denied", literal(topic, TOPIC), Operation.READ, Permission.DENY),
        ("group denied", literal(group, "*"), Operation.ALL, Permission.DENY),
    ]
    for name, pattern, operation, permission in own:
        found[name] = [Binding(pattern, entry_of(len(found), operation, permission))]
    return found


STATES: Final = states()


def all_differences(sides: tuple[Side, Side], guest: Guest) -> str:
    """Of all requests; empty if there is none."""
    reports = [(request, differences(sides, request, [guest])) for request in REQUESTS]
    return "\n".join(f"{request}: {report}" for request, report in reports if report)


@pytest.fixture(scope="module")
def open_sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    keys = {"allow.everyone.if.no.acl.found": "true"}
    with running_sides(tmp_path_factory.mktemp("acl-open"), keys, [], admin=False) as both:
        yield both


def test_there_are_enough_cells() -> None:
    assert len(REQUESTS) * len(STATES) >= CELLS_MIN


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.wide] if at % 3 else []) for at, name in enumerate(STATES)]
)
def test_who_is_not_spoken_of_may_do_what_no_acl_is_about(open_sides: tuple[Side, Side], name: str) -> None:
    guest = by_guest(list(STATES).index(name))
    for side in open_sides:
        with asking(side.broker.port, ADMIN_HOST) as admin:
            side.by(admin).create_group_and_transaction()  # what the guest before this one was allowed to delete
            side.create_acls(STATES[name])
    try:
        assert not (report := all_differences(open_sides, guest)), report
    finally:
        for side in open_sides:
            with asking(side.broker.port, ADMIN_HOST) as admin:
                side.by(admin).delete_acls()


@pytest.fixture(scope="module")
def super_sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """The clients are a super user, and are denied everything."""
    denied = Entry(PRINCIPAL, "*", Operation.ALL, Permission.DENY)
    patterns = [CLUSTER if kind is ResourceType.CLUSTER else literal(kind, "*") for kind in TYPES]
    acls = [Binding(pattern, denied) for pattern in patterns]
    keys = {"super.users": f"User:root;{PRINCIPAL}"}
    with running_sides(tmp_path_factory.mktemp("acl-super"), keys, acls, admin=False) as both:
        yield both


@pytest.mark.wide
def test_a_super_user_may_do_everything_whatever_acls_say(super_sides: tuple[Side, Side]) -> None:
    assert not (report := all_differences(super_sides, Guest("127.9.99.1"))), report
    assert not any(side.audit() for side in super_sides)
