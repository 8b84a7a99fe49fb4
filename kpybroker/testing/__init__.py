"""A broker for tests: `with Broker() as broker: ...`.

`Broker` and `Cluster` start in a fraction of a second, and end with the test, whatever ends it. They can be looked into
(`topics`, `records`, `group` ...), made to fail (`faults`), and their clock can be moved (`clock`).

This is a client of the control channel: nothing of the broker is imported here, unless it runs in a thread of this
process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpybroker.testing.broker import Broker
from kpybroker.testing.brokers import Brokers
from kpybroker.testing.clock import BrokerClock
from kpybroker.testing.cluster import Cluster, Node
from kpybroker.testing.errors import (
    BrokerGone,
    NotThere,
    StartError,
    TestingError,
    UnusedFault,
    UnusedFaultWarning,
    UsageError,
    WaitTimeout,
)
from kpybroker.testing.fault import Fault
from kpybroker.testing.faults import Faults
from kpybroker.testing.look import (
    ArchivedRecords,
    Group,
    Member,
    Partition,
    Record,
    Request,
    ShareGroup,
    SharePartition,
    ShareRecords,
    Topic,
    Transaction,
)
from kpybroker.testing.looking import Snapshot
from kpybroker.testing.registry import SchemaRegistry
from kpybroker.testing.waiting import wait_for

if TYPE_CHECKING:
    from kpybroker.testing.fixtures import Admin, BrokerFactory, Consumer, Producer, Requests, ShareConsumer
    from kpybroker.testing.typed.names import (
        ApiName,
        BrokerRelease,
        Codec,
        ErrorName,
        GroupProtocol,
        GroupState,
        GroupType,
        Isolation,
        Release,
        Sasl,
        TransactionState,
    )

__all__ = [
    "Admin",
    "ApiName",
    "ArchivedRecords",
    "Broker",
    "BrokerClock",
    "BrokerFactory",
    "BrokerGone",
    "BrokerRelease",
    "Brokers",
    "Cluster",
    "Codec",
    "Consumer",
    "ErrorName",
    "Fault",
    "Faults",
    "Group",
    "GroupProtocol",
    "GroupState",
    "GroupType",
    "Isolation",
    "Member",
    "Node",
    "NotThere",
    "Partition",
    "Producer",
    "Record",
    "Release",
    "Request",
    "Requests",
    "Sasl",
    "SchemaRegistry",
    "ShareConsumer",
    "ShareGroup",
    "SharePartition",
    "ShareRecords",
    "Snapshot",
    "StartError",
    "TestingError",
    "Topic",
    "Transaction",
    "TransactionState",
    "UnusedFault",
    "UnusedFaultWarning",
    "UsageError",
    "WaitTimeout",
    "wait_for",
]


def __getattr__(name: str) -> Any:
    """The names that are only types: what a program without annotations does not import."""
    if name in __all__:
        from kpybroker.testing import fixtures
        from kpybroker.testing.typed import names

        return getattr(names, name, None) or getattr(fixtures, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
