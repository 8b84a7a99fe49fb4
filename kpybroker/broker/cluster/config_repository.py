"""The dynamic configuration of topics and brokers: read from the tree, kept, watched, changed, applied live.

Kafka's `ZkConfigManager`, ``ZkConfigRepository`` and the writing half of ``AdminZkClient``. The tree holds the truth
(`/config/topics/<t>`, `/config/brokers/<id>|<default>`). A change is a write there and a notification under
`/config/changes`, which every broker watches. Kept here is what this broker applies: the overrides of topics with the
`LogConfig` they make, and the dynamic layers of its `BrokerConfig`.

What clients, users, addresses, groups and subscriptions to client metrics have
(`/config/users/<u>[/clients/<c>]`, `/config/clients/<c>`, `/config/ips/<ip>`, `/config/groups/<g>`,
`/config/client-metrics/<s>`) is passed on to those who `follow` it, and not kept.

Not here: what the configuration requests mean (`handlers.configuration`, `handlers.security`), and which values are
allowed (`kpybroker.config`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import trio

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.config.dynamic import is_password, usable_dynamic
from kpybroker.config.keys.synonyms import TOPIC_DEFAULT_KEYS
from kpybroker.config.keys.topic import TOPIC_KEYS
from kpybroker.config.sources.passwords import decoder, renewed
from kpybroker.config.topic import LogConfig, parse_topic_value
from kpybroker.config.values import ConfigError
from kpybroker.coordination.tree import create_recursive, delete_recursive, retry_until_connected
from kpybroker.coordination.watch_loop import WatchLoop
from kpybroker.core import tree as t
from kpybroker.wire import znodes

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.storage.log.log import Log

logger = logging.getLogger("kafka.server.ZkConfigManager")
dynamic_logger = logging.getLogger("kafka.server.DynamicBrokerConfig")

NOTIFICATION_AGE_MAX_MS: Final = 15 * 60 * 1000
"""A broker that sees an older notification removes it (`ZkNodeChangeNotificationListener`)."""

READS_PER_BATCH: Final = 500
"""How many znodes are read at once: others run between batches."""

TOPIC_COST: Final = 10
"""Units of a `YieldBudget` that applying a topic's configuration costs."""

TopicListener = Callable[[str, LogConfig], None]
BrokerListener = Callable[[frozenset[str]], None]
EntityListener = Callable[[str, Mapping[str, str]], None]

CLIENT_TYPES: Final = (znodes.CONFIG_USERS, znodes.CONFIG_CLIENTS, znodes.CONFIG_IPS)
"""Entities that are not of the broker's own."""

REMOVED_TYPES: Final = (*CLIENT_TYPES, znodes.CONFIG_GROUPS, znodes.CONFIG_CLIENT_METRICS)
"""Their nodes are removed when nothing is set (KAFKA-12632)."""

CHANGED_TYPES: Final = (*znodes.CONFIG_TYPES, znodes.CONFIG_GROUPS, znodes.CONFIG_CLIENT_METRICS)
"""What a notification may name."""


class ConfigRepository:
    """Life: `start` once the tree is open and the broker's id is known, then changes until the broker stops."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._overrides: dict[str, dict[str, str]] = {}
        self._log_configs: dict[str, LogConfig] = {}
        self._listeners: list[TopicListener] = []
        self._broker_listeners: list[BrokerListener] = []
        self._read_listeners: list[BrokerListener] = []
        self._followers: dict[str, list[EntityListener]] = {}
        # What is read later must be kept later, and either of two responses that arrive together may be taken first.
        self._loading = trio.Lock()
        self._last_change = -1
        self._changes = WatchLoop(
            znodes.CONFIG_CHANGES, self.process_pending_changes, logger, name="configuration changes"
        )

    # --- life

    async def start(self) -> None:
        """Read everything, then watch. To be called before logs are loaded. Raises TreeError."""
        host = self._host
        host.on_tree_event(self._changes.on_tree_event)
        await create_recursive(host.tree, znodes.CONFIG_CHANGES, fail_if_exists=False)
        # Watch first, read second: what changes in between is read again, which is harmless.
        names = await self._pending_changes()
        self._last_change = max(map(_sequence, names), default=-1)
        await self._load_brokers()
        await self._renew_passwords()
        listed = await self._submit([t.Children(znodes.config_type_path(znodes.CONFIG_TOPICS))])
        if isinstance(listed[0], t.NodeChildren):
            await self._load_topics(listed[0].names)
        for entity_type in self._followers:
            await self._announce(entity_type, await self.entities_and_pairs(entity_type))
        host.spawn("config-event-process-thread", self._changes.run)

    # --- look-ups

    def topic_config(self, topic: str) -> LogConfig:
        """What the topic's logs use here. A topic never read has the broker's defaults: see `prefetch`."""
        config = self._log_configs.get(topic)
        if config is None:
            overrides = self._overrides.get(topic)
            config = self._make_log_config(topic, overrides) if overrides else self._host.config.log_defaults
            self._log_configs[topic] = config
        return config

    def topic_overrides(self, topic: str) -> Mapping[str, str]:
        """What the topic itself sets, as last read here."""
        return self._overrides.get(topic, {})

    async def prefetch(self, topics: Mapping[str, bool]) -> None:
        """Read the configuration of topics about to be hosted here: the new ones (True), and those not known yet.

        A new topic may have the name of a deleted one, with other settings.
        """
        wanted = [name for name, is_new in topics.items() if is_new or name not in self._overrides]
        if wanted:
            await self._load_topics(wanted)

    def forget(self, topic: str) -> None:
        """The topic is gone from this broker; the next one of this name may have other settings."""
        self._overrides.pop(topic, None)
        self._log_configs.pop(topic, None)

    def on_topic_change(self, listener: TopicListener) -> None:
        """`listener(topic, log_config)` runs after a change of the topic's settings or of their defaults."""
        self._listeners.append(listener)

    def on_broker_change(self, listener: BrokerListener) -> None:
        """`listener(names)` runs after values of the broker's keys have changed."""
        self._broker_listeners.append(listener)

    def on_broker_read(self, listener: BrokerListener) -> None:
        """`listener(names)` runs whenever the broker's keys were read, also if none has changed: for files that keys
        name, and that may have changed.
        """
        self._read_listeners.append(listener)

    def follow(self, entity_type: str, listener: EntityListener) -> None:
        """`listener(entity, props)` runs for every entity of a type but topics and brokers: in `start`, which must come
        later, and after each change. `entity` is as in `znodes.config_path`.
        """
        self._followers.setdefault(entity_type, []).append(listener)

    # --- the tree

    async def entities(self, entity_type: str) -> list[str]:
        """The entities of a type that have a configuration, as in `znodes.config_path`. Raises TreeError."""
        (names,) = await self._children([znodes.config_type_path(entity_type)])
        return names

    async def entities_and_pairs(self, entity_type: str) -> list[str]:
        """The same, and of users also those that are pairs with a client id."""
        names = await self.entities(entity_type)
        if entity_type != znodes.CONFIG_USERS:
            return names
        clients = await self._children([znodes.config_path(entity_type, f"{name}/clients") for name in names])
        return names + [
            znodes.user_client_entity(name, client)
            for name, below in zip(names, clients, strict=True)
            for client in below
        ]

    async def _children(self, paths: Sequence[str]) -> list[list[str]]:
        """Of each; none where the node is missing."""
        found: list[list[str]] = []
        for start in range(0, len(paths), READS_PER_BATCH):
            results = await self._submit([t.Children(path) for path in paths[start : start + READS_PER_BATCH]])
            found += [sorted(a.names) if isinstance(a, t.NodeChildren) else [] for a in results]
        return found

    async def read(self, entity_type: str, entity: str) -> dict[str, str]:
        """What the tree holds for the entity now; empty when it holds nothing."""
        (props,) = await self.read_many(entity_type, [entity])
        return props

    async def read_many(self, entity_type: str, entities: Sequence[str]) -> list[dict[str, str]]:
        """`read` for each entity, in order. Raises TreeError."""
        found = []
        for start in range(0, len(entities), READS_PER_BATCH):
            batch = entities[start : start + READS_PER_BATCH]
            results = await self._submit([t.Get(znodes.config_path(entity_type, name)) for name in batch])
            found += [znodes.decode_config(a.data) if isinstance(a, t.NodeData) else {} for a in results]
            await trio.lowlevel.checkpoint()  # the embedded tree may have none
        return found

    async def write(self, entity_type: str, entity: str, props: Mapping[str, str]) -> None:
        """Keep `props` for the entity, notify every broker, and apply them here before returning. Raises TreeError.

        Kafka's broker applies its own change when it sees the notification. Here a client sees its change in its next
        request.
        """
        if props or entity_type not in REMOVED_TYPES or not await self._remove_unused(entity_type, entity):
            await self._store(znodes.config_path(entity_type, entity), znodes.encode_config(props))
        change = t.Create(
            znodes.config_change_path(), znodes.encode_config_change(f"{entity_type}/{entity}"), sequential=True
        )
        (result,) = await retry_until_connected(self._host.tree, [change])
        if isinstance(result, t.TreeError):
            raise result
        await self._reload(entity_type, entity)

    async def _store(self, path: str, data: bytes) -> None:
        (result,) = await retry_until_connected(self._host.tree, [t.SetData(path, data)])
        if isinstance(result, t.NoNode):
            await create_recursive(self._host.tree, path, data)
        elif isinstance(result, t.TreeError):
            raise result

    async def _remove_unused(self, entity_type: str, entity: str) -> bool:
        """Remove the node of an entity that has nothing left, and those above it that were only there for it
        (AdminZkClient.tryCleanQuotaNodes). False: it has children, and stays.
        """
        path = unused = znodes.config_path(entity_type, entity)
        user, _, client = entity.rpartition("/clients/")
        clients_path, user_path = t.parent_path(path), znodes.config_path(entity_type, user or entity)
        children, of_clients, of_user = await self._children([path, clients_path, user_path])
        if children:
            return False
        if user and of_clients == [client]:
            unused = clients_path
            if of_user == [znodes.CONFIG_CLIENTS] and not await self.read(entity_type, user):
                unused = user_path
        logger.info("Deleting %s, since nothing is configured there any more", unused)
        await delete_recursive(self._host.tree, unused)
        return True

    async def _submit(self, ops: Sequence[t.Operation]) -> list[t.Result | t.NoNode | t.BadArguments]:
        """Perform all; a missing node is a result, and one whose name no node can have. Other failures are raised."""
        results: list[t.Result | t.NoNode | t.BadArguments] = []
        for result in await retry_until_connected(self._host.tree, ops):
            if isinstance(result, t.TreeError) and not isinstance(result, t.NoNode | t.BadArguments):
                raise result
            results.append(result)
        return results

    # --- notifications

    async def process_pending_changes(self) -> None:
        """Apply the notifications received since the last call, oldest first, and remove outdated ones."""
        names = await self._pending_changes()
        new = [name for name in names if _sequence(name) > self._last_change]
        paths = [f"{znodes.CONFIG_CHANGES}/{name}" for name in new]
        for name, result in zip(new, await self._submit([t.Get(path) for path in paths]), strict=True):
            if isinstance(result, t.NodeData):
                await self._process_change(name, result.data)
            self._last_change = _sequence(name)
        await self._purge(names)

    async def _pending_changes(self) -> list[str]:
        (listed,) = await self._submit([t.Children(znodes.CONFIG_CHANGES, watch=True)])
        return sorted(listed.names, key=_sequence) if isinstance(listed, t.NodeChildren) else []

    async def _process_change(self, name: str, data: bytes | None) -> None:
        try:
            entity_type, slash, entity = znodes.decode_config_change(data).partition("/")
        except ValueError as error:
            logger.error("Configuration change %s cannot be read and is ignored: %s", name, error)
            return
        if not slash or entity_type not in CHANGED_TYPES:
            logger.error("Configuration change %s names %r, which is not a kind of entity", name, entity_type)
            return
        await self._reload(entity_type, entity)

    async def _purge(self, names: Iterable[str]) -> None:
        paths = [f"{znodes.CONFIG_CHANGES}/{name}" for name in names]
        oldest_ms = self._host.clock.time_ms() - NOTIFICATION_AGE_MAX_MS
        stats = await self._submit([t.Exists(path) for path in paths])
        outdated = [
            path for path, stat in zip(paths, stats, strict=True) if isinstance(stat, t.Stat) and stat.ctime < oldest_ms
        ]
        await self._submit([t.Delete(path) for path in outdated])

    # --- loading and applying

    async def _reload(self, entity_type: str, entity: str) -> None:
        if entity_type == znodes.CONFIG_TOPICS:
            await self._load_topics([entity])
            self._apply(entity, self._host.logs.logs_of(entity))
        elif entity_type == znodes.CONFIG_BROKERS:
            await self._load_brokers()
        elif entity_type in self._followers:
            await self._announce(entity_type, [entity])

    async def _announce(self, entity_type: str, entities: Sequence[str]) -> None:
        if not entities:
            return
        async with self._loading:
            for entity, props in zip(entities, await self.read_many(entity_type, entities), strict=True):
                for listener in self._followers[entity_type]:
                    listener(entity, props)

    async def _load_topics(self, topics: Sequence[str]) -> None:
        async with self._loading:
            for start in range(0, len(topics), READS_PER_BATCH):
                await self._load_batch(topics[start : start + READS_PER_BATCH])

    async def _load_batch(self, topics: Sequence[str]) -> None:
        for name, props in zip(topics, await self.read_many(znodes.CONFIG_TOPICS, topics), strict=True):
            if self._overrides.get(name) != props:
                self._overrides[name] = props
                self._log_configs.pop(name, None)

    async def _load_brokers(self) -> None:
        """Both dynamic layers at once, so that no one sees only one of them changed."""
        async with self._loading:
            changed = await self._read_brokers()
        for listener in (*self._read_listeners, *(self._broker_listeners if changed else ())):
            listener(frozenset(changed))
        if not TOPIC_DEFAULT_KEYS.isdisjoint(changed):
            await self._apply_defaults()

    async def _renew_passwords(self) -> None:
        """Encode the passwords of this broker with the new secret where `password.encoder.old.secret` was used."""
        entity = str(self._host.node_id)
        stored = await self.read(znodes.CONFIG_BROKERS, entity)
        changed = renewed(self._host.config, {k: v for k, v in stored.items() if is_password(k)}, os.urandom)
        if changed:
            dynamic_logger.info("Passwords are encoded with the new secret: %s", ", ".join(sorted(changed)))
            await self.write(znodes.CONFIG_BROKERS, entity, {**stored, **changed})

    async def _read_brokers(self) -> Collection[str]:
        """Apply both layers, and return the keys whose values have changed."""
        entities = (str(self._host.node_id), znodes.CONFIG_DEFAULT_ENTITY)
        own, default = await self.read_many(znodes.CONFIG_BROKERS, entities)
        keys = self._host.config.keys
        own, ignored_own = usable_dynamic(own, keys, per_broker=True, decode=decoder(self._host.config))
        default, ignored_default = usable_dynamic(default, keys, per_broker=False)
        for layer, ignored in (("broker", ignored_own), ("default cluster", ignored_default)):
            for name, reason in ignored.items():
                dynamic_logger.error("Dynamic %s config %s is ignored: %s", layer, name, reason)
        try:
            changed = self._host.config.set_dynamic(own, default)
        except ConfigError as error:
            dynamic_logger.error("The dynamic configuration could not be applied: %s", error)
            return ()
        if changed:
            dynamic_logger.info("Dynamic configuration changed: %s", ", ".join(sorted(changed)))
        return changed

    async def _apply_defaults(self) -> None:
        """The defaults of every topic have changed with the broker's keys. Other tasks may run in between."""
        self._log_configs.clear()
        by_topic: dict[str, list[Log]] = {}
        for one in self._host.logs:
            by_topic.setdefault(one.partition.topic, []).append(one)
        budget = YieldBudget()
        for topic, logs in by_topic.items():
            self._apply(topic, logs)
            await budget.spend(TOPIC_COST)

    def _apply(self, topic: str, logs: Iterable[Log]) -> None:
        config = self.topic_config(topic)
        for one in logs:
            one.update_config(config)
        for listener in self._listeners:
            listener(topic, config)

    def _make_log_config(self, topic: str, overrides: Mapping[str, str]) -> LogConfig:
        """A key that has an invalid value in the tree keeps its default, and an error is logged."""
        usable = {}
        for name, text in overrides.items():
            try:
                if name in TOPIC_KEYS:
                    parse_topic_value(name, text)
                usable[name] = text
            except ConfigError as error:
                logger.error("Topic %s: %s; its default is used", topic, error)
        return LogConfig.from_props(usable, self._host.config.log_defaults)


def _sequence(name: str) -> int:
    """``config_change_0000000012`` -> 12; -1 for any other name."""
    digits = name.removeprefix(znodes.CONFIG_CHANGE_PREFIX)
    return int(digits) if digits.isdigit() else -1
