"""The ACLs of the cluster, as the tree keeps them: loaded, kept fresh by notifications, and changed. Kafka's
`AclAuthorizer` with its ``ZkAclStore``s.

The ACLs of a resource pattern are one node below `/kafka-acl` (literal) or `/kafka-acl-extended/prefixed`. A change
reads the node, writes it if its version is still the same, else reads again; then it is announced below
`/kafka-acl-changes` or `/kafka-acl-extended-changes`, and every broker reads that node. The broker that makes a change
applies it before it responds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.tree_failures import error_of
from kpybroker.broker.security.notifications import Notifications, Subject, submit
from kpybroker.coordination.tree import create_recursive, retry_until_connected
from kpybroker.core import tree as t
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.security.acl_authorizer import AclIndex, AuthorizerRules, VersionedAcls
from kpybroker.core.security.acls import (
    Binding,
    Entry,
    Filter,
    Pattern,
    PatternType,
    Permission,
    by_camel,
    camel,
    parse_principal,
)
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host

logger = logging.getLogger("kafka.security.authorizer.AclAuthorizer")

READS_PER_BATCH: Final = 500
UPDATES_MAX: Final = 11
"""Attempts to write a node that others write at the same time, as Kafka's `maxUpdateRetries`."""
BACKOFF_S: Final = 0.1
BACKOFF_JITTER_S: Final = 0.05
RESOURCE_TYPES: Final = tuple(one for one in ResourceType if one > ResourceType.ANY)
STORES: Final[dict[PatternType, tuple[str, str]]] = {
    PatternType.LITERAL: (znodes.ACLS, znodes.ACL_CHANGES),
    PatternType.PREFIXED: (f"{znodes.ACLS_EXTENDED}/prefixed", znodes.ACL_EXTENDED_CHANGES),
}
"""Pattern type -> where its ACLs are, and where their changes are announced."""

_resource_type = by_camel(ResourceType)
_operation = by_camel(Operation)
_permission = by_camel(Permission)

Change = Callable[[tuple[Entry, ...]], tuple[Entry, ...]]


class Deleted(NamedTuple):
    """An ACL that a filter found, and why it could not be deleted."""

    binding: Binding
    error: KafkaError | None


class Acls:
    """Life: `start` once the tree is open, then until the broker stops. `index` has what is known now."""

    def __init__(self, host: Host, rules: AuthorizerRules) -> None:
        self.index = AclIndex(rules)
        self._host = host
        self._changing = trio.Lock()
        self._is_started = False
        self._notifications = [
            Notifications(host, self._subject(pattern_type, changes)) for pattern_type, (_, changes) in STORES.items()
        ]

    async def start(self) -> None:
        """Make Kafka's nodes where they are missing, read all ACLs and watch for changes, before clients are served.

        Raises TreeError, and ZnodeError for a node that cannot be read.
        """
        for root, _ in STORES.values():
            for resource_type in RESOURCE_TYPES:
                await create_recursive(self._host.tree, f"{root}/{camel(resource_type.name)}", fail_if_exists=False)
        for notifications in self._notifications:
            await notifications.start()
        self._is_started = True

    # --- changes

    async def create(self, bindings: Sequence[Binding]) -> list[KafkaError | None]:
        """Add ACLs, each pattern's at once; for each of them None, or why it was not added."""
        results: list[KafkaError | None] = [_refusal(binding) for binding in bindings]
        by_pattern: dict[Pattern, list[int]] = {}
        for index, binding in enumerate(bindings):
            if results[index] is None:
                by_pattern.setdefault(binding.pattern, []).append(index)
        async with self._changing:
            for pattern, indexes in by_pattern.items():
                error = await self._try_update(pattern, _adding([bindings[index].entry for index in indexes]))
                for index in indexes:
                    results[index] = error
        return results

    async def delete(self, filters: Sequence[Filter]) -> list[list[Deleted]]:
        """Remove what the filters find; for each of them what it found. An ACL counts for the first that finds it."""
        found: list[dict[Binding, KafkaError | None]] = [{} for _ in filters]
        async with self._changing:
            named = [pattern for one in filters for pattern in one.pattern.patterns]
            budget = YieldBudget()
            for pattern in dict.fromkeys((*self.index.patterns(), *named)):
                await budget.spend(len(filters))
                fitting = [(number, one) for number, one in enumerate(filters) if one.pattern.matches(pattern)]
                if fitting:
                    await self._delete_of(pattern, fitting, found)
        return [[Deleted(binding, error) for binding, error in one.items()] for one in found]

    async def _delete_of(
        self, pattern: Pattern, filters: list[tuple[int, Filter]], found: list[dict[Binding, KafkaError | None]]
    ) -> None:
        removed: dict[Entry, int] = {}

        def keep(now: tuple[Entry, ...]) -> tuple[Entry, ...]:
            for entry in now:
                first = next((number for number, one in filters if one.entry.matches(entry)), None)
                if first is not None:
                    removed.setdefault(entry, first)
            return tuple(entry for entry in now if entry not in removed)

        error = await self._try_update(pattern, keep)
        for entry, number in removed.items():
            found[number][Binding(pattern, entry)] = error

    async def _try_update(self, pattern: Pattern, change: Change) -> KafkaError | None:
        try:
            await self._update(pattern, change)
        except KafkaError as error:
            return error
        except (t.TreeError, ValueError) as error:
            logger.error("ACLs of %s could not be changed: %r", pattern, error)
            return error_of(error)
        return None

    async def _update(self, pattern: Pattern, change: Change) -> None:
        """Change the node of a pattern, which others may change at the same time."""
        now = self.index.acls_of(pattern) or await self._read(pattern)
        before = now
        for _ in range(UPDATES_MAX):
            entries = change(now.entries if now else ())
            version = await self._write(pattern, entries, now)
            if version is not None:
                self.index.update(pattern, VersionedAcls(entries, version))
                if set(entries) != set(before.entries if before else ()):
                    logger.info("Updated ACLs for %s with new version %d", pattern, version)
                    await self._announce(pattern)
                return
            await self._host.clock.pause(BACKOFF_S + self._host.random.random() * BACKOFF_JITTER_S)
            now = await self._read(pattern)
        logger.error("ACLs of %s could not be changed: other brokers changed them %d times", pattern, UPDATES_MAX)
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)

    async def _write(self, pattern: Pattern, entries: tuple[Entry, ...], now: VersionedAcls | None) -> int | None:
        """The node's new version; None where it is not as it was in `now`."""
        path = _path(pattern)
        data = znodes.encode_acls(map(_to_znode, entries))
        operation: t.Operation
        if not entries:
            if now is None:
                return 0
            operation = t.Delete(path, now.version)
        else:
            operation = t.Create(path, data) if now is None else t.SetData(path, data, now.version)
        (result,) = await retry_until_connected(self._host.tree, [operation])
        if isinstance(result, t.NoNode) and not entries:
            return 0
        if isinstance(result, (t.NodeExists, t.BadVersion, t.NoNode)):
            return None
        if isinstance(result, t.TreeError):
            raise result
        return result.version if isinstance(result, t.Stat) else 0

    async def _announce(self, pattern: Pattern) -> None:
        kind = pattern.pattern_type.name
        data = znodes.encode_acl_change(kind, pattern.resource_type.name, pattern.name)
        await submit(self._host, [t.Create(znodes.acl_change_path(kind), data, sequential=True)])

    # --- reading

    def _subject(self, pattern_type: PatternType, path: str) -> Subject:
        async def changed(data: bytes | None) -> None:
            kind, resource_type, name = znodes.decode_acl_change(pattern_type is not PatternType.LITERAL, data)
            try:
                pattern = Pattern(ResourceType[resource_type], name, PatternType[kind])
            except KeyError as error:
                raise ValueError(f"{error} is no type of resource or pattern") from None
            async with self._changing:
                self._apply(pattern, await self._read(pattern))

        async def reload() -> None:
            async with self._changing:
                await self._load(pattern_type)

        return Subject(path, znodes.ACL_CHANGES_PREFIX, changed, reload)

    async def _load(self, pattern_type: PatternType) -> None:
        """Read all ACLs of one type of patterns; those that are gone are forgotten."""
        root = STORES[pattern_type][0]
        patterns: list[Pattern] = []
        for kind in await self._names(root):
            try:
                resource_type = _resource_type(kind)
            except ValueError:
                logger.warning("Ignoring unknown ResourceType: %s", ascii(kind))
                continue
            names = await self._names(f"{root}/{kind}")
            patterns += [Pattern(resource_type, name, pattern_type) for name in names]
        for gone in {one for one in self.index.patterns() if one.pattern_type is pattern_type}.difference(patterns):
            self.index.update(gone, None)
        for start in range(0, len(patterns), READS_PER_BATCH):
            batch = patterns[start : start + READS_PER_BATCH]
            results = await submit(self._host, [t.Get(_path(pattern)) for pattern in batch])
            for pattern, result in zip(batch, results, strict=True):
                self._apply_loaded(pattern, result)

    async def _names(self, path: str) -> tuple[str, ...]:
        (listed,) = await submit(self._host, [t.Children(path)])
        return listed.names if isinstance(listed, t.NodeChildren) else ()

    def _apply_loaded(self, pattern: Pattern, result: t.Result | t.NoNode) -> None:
        """At the start a node that cannot be read is raised. Later what was known of it stays."""
        try:
            self._apply(pattern, _acls(_path(pattern), result))
        except znodes.ZnodeError as error:
            if not self._is_started:
                raise
            logger.error("ACLs of %s cannot be read, and stay as they were: %s", pattern, error)

    def _apply(self, pattern: Pattern, acls: VersionedAcls | None) -> None:
        try:
            self.index.update(pattern, acls)
        except ValueError as error:
            raise znodes.ZnodeError(f"{_path(pattern)}: {error}") from None

    async def _read(self, pattern: Pattern) -> VersionedAcls | None:
        path = _path(pattern)
        (result,) = await submit(self._host, [t.Get(path)])
        return _acls(path, result)


def _adding(entries: list[Entry]) -> Change:
    def change(now: tuple[Entry, ...]) -> tuple[Entry, ...]:
        for entry in entries:
            parse_principal(entry.principal)  # raises ValueError: nothing is written for this pattern
        return tuple(dict.fromkeys((*now, *entries)))

    return change


def _refusal(binding: Binding) -> KafkaError | None:
    """Why an ACL cannot be kept at all."""
    pattern, entry = binding.pattern, binding.entry
    is_unknown = (
        pattern.resource_type is ResourceType.UNKNOWN
        or pattern.pattern_type is PatternType.UNKNOWN
        or entry.operation is Operation.UNKNOWN
        or entry.permission is Permission.UNKNOWN
    )
    return KafkaError(ErrorCode.INVALID_REQUEST, "Failed to create ACL") if is_unknown or "/" in pattern.name else None


def _path(pattern: Pattern) -> str:
    return znodes.acl_path(pattern.pattern_type.name, camel(pattern.resource_type.name), pattern.name)


def _to_znode(entry: Entry) -> znodes.AclEntry:
    return znodes.AclEntry(entry.principal, camel(entry.permission.name), camel(entry.operation.name), entry.host)


def _acls(path: str, result: t.Result | t.NoNode) -> VersionedAcls | None:
    """What a node holds; None where there is none. Raises ZnodeError."""
    if not isinstance(result, t.NodeData):
        return None
    try:
        entries = [
            Entry(one.principal, one.host, _operation(one.operation), _permission(one.permission_type))
            for one in znodes.decode_acls(result.data)
        ]
    except ValueError as error:
        raise znodes.ZnodeError(f"{path}: {error}") from None
    return VersionedAcls(tuple(dict.fromkeys(entries)), result.stat.version)
