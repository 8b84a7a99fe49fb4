"""What every component of a broker may ask of the broker it lives in: the seams, and its own life. Nothing higher.

A component takes a `Host` and the few collaborators it works with (its neighbours' classes, a small Protocol where it
is used, or a callback). It never takes the whole `Broker`: only `app` builds that, and only handlers see all of it.

Some of these are known only once the broker has started (`tree`, `logs`, and `node_id` where it is generated), so a
component reads them from its host when it needs them and keeps no copy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import random

    from kpybroker.broker.loop.clock import Clock
    from kpybroker.broker.loop.slow_work import SlowWork
    from kpybroker.config.broker import BrokerConfig
    from kpybroker.coordination.tree import Tree
    from kpybroker.core.authorizer import Authorizer
    from kpybroker.core.budget import StateBudget
    from kpybroker.core.security.quotas import ClientQuotas
    from kpybroker.core.tree import TreeEvent
    from kpybroker.storage.directories.manager import LogManager
    from kpybroker.storage.disk.errors import LogDirError
    from kpybroker.storage.disk.files import Files


class Host(Protocol):
    """The broker, as its components see it."""

    config: BrokerConfig
    clock: Clock
    files: Files
    random: random.Random
    """The only source of randomness and of ids, so that a seed fixes a run."""
    node_id: int

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's present registration (KIP-380); -1 before the first."""

    tree: Tree
    logs: LogManager
    authorizer: Authorizer
    quotas: ClientQuotas | None
    """Of users and client ids; None while none is set anywhere."""
    budget: StateBudget
    """What the state that clients build may take in memory."""
    slow_work: SlowWork
    """Validates, searches and converts records where that takes long."""

    def spawn(self, name: str, function: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Run a supervised background task until the broker stops."""

    def log_dir_failed(self, error: LogDirError) -> None:
        """Take the directory and everything in it offline."""

    def on_tree_event(self, listener: Callable[[TreeEvent], None]) -> None:
        """Call `listener`, which must not block, with every event of the tree, in order."""
