"""A broker for tests: `with Broker() as broker: ...`.

`Broker` and `Cluster` start in a fraction of a second, and end with the test, whatever ends it. They can be looked into
(`topics`, `records`, `group` ...), made to fail (`faults`), and their clock can be moved (`clock`).

This is a client of the control channel: nothing of the broker is imported here, unless it runs in a thread of this
process.
"""

from __future__ import annotations

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
from kpybroker.testing.look import Group, Member, Partition, Record, Request, Topic, Transaction
from kpybroker.testing.looking import Snapshot
from kpybroker.testing.registry import SchemaRegistry
from kpybroker.testing.waiting import wait_for

__all__ = [
    "Broker",
    "BrokerClock",
    "BrokerGone",
    "Brokers",
    "Cluster",
    "Fault",
    "Faults",
    "Group",
    "Member",
    "Node",
    "NotThere",
    "Partition",
    "Record",
    "Request",
    "SchemaRegistry",
    "Snapshot",
    "StartError",
    "TestingError",
    "Topic",
    "Transaction",
    "UnusedFault",
    "UnusedFaultWarning",
    "UsageError",
    "WaitTimeout",
    "wait_for",
]
