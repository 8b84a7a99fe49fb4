"""This broker's features (KIP-584): what it supports, and what `/feature` has finalized, which it watches.

As Kafka's ``FinalizedFeatureChangeListener``. What was read last is `metadata.snapshot.features`. Levels are applied in
the order of their epochs and never backwards: a client that has seen an epoch ignores responses with an older one. A
broker that does not support what is finalized does not start, and one that runs stops: it would not understand the
requests and the records of the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from kpybroker.coordination.tree import retry_until_connected
from kpybroker.coordination.watch_loop import WatchLoop
from kpybroker.core import tree as t
from kpybroker.core.features import NOT_SUPPORTED, Finalized, Levels, Ranges, newest, unsupported
from kpybroker.wire import znodes

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.loop.host import Host

logger = logging.getLogger("kafka.server.FinalizedFeatureChangeListener")


class UnsupportedFeatures(Exception):
    """The cluster has finalized levels that this broker does not support; `highest` are those that it does."""

    def __init__(self, levels: Levels, supported: Ranges) -> None:
        self.highest = {name: supported.get(name, NOT_SUPPORTED).max for name in levels}
        super().__init__(levels_text(levels))


class Features:
    """`supported`: what this broker can do. `on_unsupported` is called when what is finalized later is more."""

    def __init__(
        self,
        host: Host,
        metadata: MetadataCache,
        supported: Ranges,
        on_unsupported: Callable[[UnsupportedFeatures], None],
    ) -> None:
        self.supported = supported
        self._host = host
        self._metadata = metadata
        self._on_unsupported = on_unsupported
        self._changes = WatchLoop(znodes.FEATURE, self._read_again, logger)

    async def start(self) -> None:
        """Read `/feature`, which may not be there yet, and watch it. Raises UnsupportedFeatures and TreeError."""
        self._host.on_tree_event(self._changes.on_tree_event)
        await self.read()
        self._host.spawn("feature-zk-node-event-process-thread", self._process_changes)

    async def read(self) -> None:
        """Apply what `/feature` says now. Raises UnsupportedFeatures, ZnodeError and TreeError."""
        node = await self._get()
        known = self._metadata.snapshot.features
        if node is None:
            if known.epoch >= 0:
                self._keep("is gone")
            return
        if node.stat.version < known.epoch:
            self._keep(f"has version {node.stat.version}, which is older")
            return
        found = znodes.decode_features(node.data)
        if found.enabled:
            finalized = Finalized(dict(found.features), node.stat.version)
        else:
            # As Kafka, which says that it knows no epoch; one that clients have seen must not fall.
            finalized = Finalized({}, node.stat.version if known.epoch >= 0 else known.epoch)
        if missing := unsupported(finalized.levels, self.supported):
            raise UnsupportedFeatures(missing, self.supported)
        if finalized != known:
            self._metadata.finalize(finalized)
            logger.info("Finalized features: %s, epoch %d", levels_text(finalized.levels), finalized.epoch)

    def _keep(self, problem: str) -> None:
        known = self._metadata.snapshot.features
        logger.error(
            "%s %s: the finalized features stay %s, epoch %d, until this broker starts again",
            *(znodes.FEATURE, problem, levels_text(known.levels), known.epoch),
        )

    async def _get(self) -> t.NodeData | None:
        """The node, None where it is missing; the watch is set in both cases."""
        while True:
            (found,) = await retry_until_connected(self._host.tree, [t.Get(znodes.FEATURE, watch=True)])
            if isinstance(found, t.NodeData):
                return found
            if not isinstance(found, t.NoNode):
                assert isinstance(found, t.TreeError)
                raise found
            (stat,) = await retry_until_connected(self._host.tree, [t.Exists(znodes.FEATURE, watch=True)])
            if isinstance(stat, t.TreeError):
                raise stat
            if stat is None:
                return None

    def say_what_could_be_raised(self) -> None:
        """A line about levels that this broker supports and the cluster has not finalized: only a user raises them."""
        finalized = self._metadata.snapshot.features
        higher = {name: level for name, level in newest(self.supported).items() if level > finalized.level(name)}
        if higher:
            logger.info(
                "The cluster has finalized %s; this broker supports %s: `kpybroker feature upgrade %s` raises it, once "
                "every broker supports it",
                levels_text(finalized.levels),
                levels_text(higher),
                " ".join(f"{name}={level}" for name, level in higher.items()),
            )

    # --- changes

    async def _process_changes(self) -> None:
        """Until more is finalized than this broker supports: read again what has changed."""
        try:
            await self._changes.run()
        except UnsupportedFeatures as failure:
            self._on_unsupported(failure)

    async def _read_again(self) -> None:
        try:
            await self.read()
        except znodes.ZnodeError as failure:
            self._keep(f"cannot be read ({failure})")


def levels_text(levels: Levels) -> str:
    """`group.version=1`; `none`."""
    return ", ".join(f"{name}={level}" for name, level in sorted(levels.items())) or "none"
