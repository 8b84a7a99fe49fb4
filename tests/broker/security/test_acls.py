"""The ACLs of the tree: what is written, that other writers are respected, and that every broker hears of a change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from kpybroker.broker.security.acls import RESOURCE_TYPES, Acls
from kpybroker.core import tree as t
from kpybroker.core.authorizer import Operation, Principal, ResourceType
from kpybroker.core.security.acl_authorizer import AuthorizerRules
from kpybroker.core.security.acls import (
    Binding,
    Entry,
    EntryFilter,
    Filter,
    Pattern,
    PatternFilter,
    PatternType,
    Permission,
)
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode
from tests.support.brokers.host import FakeHost, fake_host

ORDERS = Pattern(ResourceType.TOPIC, "orders")
READ = Entry("User:alice", "*", Operation.READ, Permission.ALLOW)
WRITE = Entry("User:alice", "*", Operation.WRITE, Permission.DENY)
NODE = "/kafka-acl/Topic/orders"
READ_JSON = b'{"acls":[{"principal":"User:alice","permissionType":"Allow","host":"*","operation":"Read"}],"version":1}'


@asynccontextmanager
async def started(directory: Path) -> AsyncIterator[tuple[FakeHost, Acls]]:
    async with fake_host(directory) as host:
        acls = Acls(host, AuthorizerRules())
        await acls.start()
        yield host, acls


def may_read(acls: Acls, topic: str = "orders") -> bool:
    alice = Principal("User", "alice")
    return acls.index.authorize(alice, "10.0.0.1", Operation.READ, ResourceType.TOPIC, topic)


async def until_it_may_read(acls: Acls, expected: bool = True) -> None:
    with trio.fail_after(60):
        while may_read(acls) is not expected:
            await trio.lowlevel.checkpoint()


async def changes(host: FakeHost, path: str) -> list[bytes | None]:
    names = sorted((await host.tree.children(path)).names)
    return [(await host.tree.get(f"{path}/{name}")).data for name in names]


async def test_the_start_makes_kafkas_nodes(tmp_path: Path) -> None:
    async with started(tmp_path) as (host, _):
        for root in ("/kafka-acl", "/kafka-acl-extended/prefixed"):
            names = (await host.tree.children(root)).names
            assert set(names) == {"Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User"}
        assert len(RESOURCE_TYPES) == 6
        assert await changes(host, "/kafka-acl-changes") == await changes(host, "/kafka-acl-extended-changes") == []


async def test_an_acl_is_written_and_announced_as_by_kafka(tmp_path: Path) -> None:
    async with started(tmp_path) as (host, acls):
        assert await acls.create([Binding(ORDERS, READ)]) == [None]
        assert may_read(acls)
        assert (await host.tree.get(NODE)).data == READ_JSON
        assert await changes(host, "/kafka-acl-changes") == [b"TOPIC:orders"]
        prefixed = Pattern(ResourceType.TRANSACTIONAL_ID, "app-", PatternType.PREFIXED)
        assert await acls.create([Binding(prefixed, READ)]) == [None]
        assert (await host.tree.get("/kafka-acl-extended/prefixed/TransactionalId/app-")).data == READ_JSON
        assert await changes(host, "/kafka-acl-extended-changes") == [
            b'{"version":1,"resourceType":"TRANSACTIONAL_ID","name":"app-","patternType":"PREFIXED"}'
        ]


async def test_what_is_there_already_is_no_change(tmp_path: Path) -> None:
    async with started(tmp_path) as (host, acls):
        await acls.create([Binding(ORDERS, READ), Binding(ORDERS, WRITE)])
        assert await acls.create([Binding(ORDERS, READ)]) == [None]
        assert len(await changes(host, "/kafka-acl-changes")) == 1
        found = acls.index.acls_of(ORDERS)
        assert found is not None
        assert found.entries == (READ, WRITE)


async def test_a_node_without_acls_is_deleted(tmp_path: Path) -> None:
    async with started(tmp_path) as (host, acls):
        await acls.create([Binding(ORDERS, READ), Binding(ORDERS, WRITE)])
        denied = Filter(PatternFilter(ResourceType.TOPIC), EntryFilter(permission=Permission.DENY))
        everything = Filter(PatternFilter(), EntryFilter())
        ((deleted,), rest) = await acls.delete([denied, Filter(PatternFilter(ResourceType.GROUP), EntryFilter())])
        assert (deleted.binding, deleted.error, rest) == (Binding(ORDERS, WRITE), None, [])
        assert (await host.tree.get(NODE)).data == READ_JSON
        first, second = await acls.delete([everything, everything])
        assert [one.binding for one in first] == [Binding(ORDERS, READ)]
        assert second == []  # an ACL counts for the first filter that finds it
        assert await host.tree.exists(NODE) is None
        assert not may_read(acls)
        assert await changes(host, "/kafka-acl-changes") == [b"TOPIC:orders"] * 3


async def test_a_filter_that_finds_nothing_leaves_no_trace(tmp_path: Path) -> None:
    async with started(tmp_path) as (host, acls):
        named = Filter(PatternFilter(ResourceType.TOPIC, "other"), EntryFilter())
        assert await acls.delete([named]) == [[]]
        assert await changes(host, "/kafka-acl-changes") == []


async def test_a_change_by_another_broker_is_heard_of(tmp_path: Path) -> None:
    async with started(tmp_path) as (host, acls):
        await host.tree.create(NODE, READ_JSON)
        assert not may_read(acls)
        await host.tree.create("/kafka-acl-changes/acl_changes_", b"Topic:orders", sequential=True)
        await until_it_may_read(acls)
        await host.tree.delete(NODE)
        await host.tree.create("/kafka-acl-changes/acl_changes_", b"TOPIC:orders", sequential=True)
        await until_it_may_read(acls, False)


async def test_what_another_broker_wrote_is_kept(tmp_path: Path) -> None:
    """The version of the node is checked: the first attempt fails, the second adds to what is there."""
    async with started(tmp_path) as (host, acls):
        await acls.create([Binding(ORDERS, READ)])
        other = Entry("User:bob", "*", Operation.READ, Permission.ALLOW)
        both = [znodes.AclEntry(one.principal, "Allow", "Read", "*") for one in (READ, other)]
        await host.tree.set(NODE, znodes.encode_acls(both))
        assert await acls.create([Binding(ORDERS, WRITE)]) == [None]
        entries = znodes.decode_acls((await host.tree.get(NODE)).data)
        assert [(one.principal, one.operation) for one in entries] == [
            ("User:alice", "Read"),
            ("User:bob", "Read"),
            ("User:alice", "Write"),
        ]


async def test_a_node_that_appeared_or_is_gone_since_is_no_failure(tmp_path: Path) -> None:
    async with started(tmp_path) as (host, acls):
        await acls.create([Binding(ORDERS, READ)])
        await host.tree.delete(NODE)
        assert await acls.create([Binding(ORDERS, WRITE)]) == [None]
        assert len(znodes.decode_acls((await host.tree.get(NODE)).data)) == 1


@pytest.mark.parametrize(
    ("binding", "code"),
    [
        (Binding(Pattern(ResourceType.TOPIC, "a/b"), READ), ErrorCode.INVALID_REQUEST),
        (Binding(Pattern(ResourceType.UNKNOWN, "a"), READ), ErrorCode.INVALID_REQUEST),
        (
            Binding(ORDERS, Entry("User:a", "*", Operation.UNKNOWN, Permission.ALLOW)),
            ErrorCode.INVALID_REQUEST,
        ),
        (Binding(ORDERS, Entry("alice", "*", Operation.READ, Permission.ALLOW)), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_a_bad_acl_is_refused_and_the_others_are_kept(tmp_path: Path, binding: Binding, code: ErrorCode) -> None:
    other = Binding(Pattern(ResourceType.GROUP, "readers"), READ)
    async with started(tmp_path) as (host, acls):
        refused, kept = await acls.create([binding, other])
        assert refused is not None
        assert (refused.code, kept) == (code, None)
        assert await host.tree.exists("/kafka-acl/Group/readers")
        assert await host.tree.exists(NODE) is None


async def test_a_start_reads_what_is_there(tmp_path: Path) -> None:
    async with started(tmp_path) as (host, _):
        await host.tree.create(NODE, READ_JSON)
        await host.tree.create("/kafka-acl/Unheard")
        again = Acls(host, AuthorizerRules())
        await again.start()
        assert may_read(again)


@pytest.mark.parametrize(
    "data", [b"no JSON", READ_JSON.replace(b"User:alice", b"alice"), READ_JSON.replace(b"Read", b"X")]
)
async def test_a_start_on_a_node_that_cannot_be_read_names_it(tmp_path: Path, data: bytes) -> None:
    async with started(tmp_path) as (host, _):
        await host.tree.create(NODE, data)
        with pytest.raises(znodes.ZnodeError, match="/kafka-acl/Topic/orders"):
            await Acls(host, AuthorizerRules()).start()


async def test_a_notification_that_cannot_be_read_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with started(tmp_path) as (host, acls):
        await acls.create([Binding(ORDERS, READ)])
        for data in (b"nothing", b"PLANET:orders"):
            await host.tree.create("/kafka-acl-changes/acl_changes_", data, sequential=True)
        await host.tree.set(NODE, b"broken")
        await host.tree.create("/kafka-acl-changes/acl_changes_", b"TOPIC:orders", sequential=True)
        with trio.fail_after(60):
            while len([one for one in caplog.records if "cannot be read" in one.message]) < 3:
                await trio.lowlevel.checkpoint()
        assert may_read(acls)


async def test_after_a_new_session_a_node_that_cannot_be_read_keeps_what_was_known(tmp_path: Path) -> None:
    async with started(tmp_path) as (host, acls):
        await acls.create([Binding(ORDERS, READ)])
        await host.tree.set(NODE, b"broken")
        await host.tree.create("/kafka-acl/Topic/other", READ_JSON)
        await acls._load(PatternType.LITERAL)
        assert may_read(acls)
        assert may_read(acls, "other")
        await host.tree.delete(NODE)
        await acls._load(PatternType.LITERAL)
        assert not may_read(acls)


async def test_changes_that_others_make_again_and_again_end_in_an_error(tmp_path: Path) -> None:
    async with started(tmp_path) as (host, acls):
        await acls.create([Binding(ORDERS, READ)])
        tree = host.tree

        class Disturbed:
            def __getattr__(self, name: str) -> object:
                return getattr(tree, name)

            async def submit_many(self, ops: list[t.Operation]) -> list[object]:
                if isinstance(ops[0], t.SetData):
                    await tree.set(NODE, READ_JSON)
                return list(await tree.submit_many(ops))

        host.tree = Disturbed()  # type: ignore[assignment]
        with trio.fail_after(60):
            (error,) = await acls.create([Binding(ORDERS, WRITE)])
        host.tree = tree
        assert error is not None
        assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
