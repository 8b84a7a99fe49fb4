"""A whole broker in this process whose requests meet faults, and requests that name two of everything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kpybroker.broker.app import Broker
from kpybroker.broker.requests.dispatch import RespondNow
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.control.requests.faults import Fault, FaultRules
from kpybroker.control.requests.interceptor import Interceptor
from kpybroker.control.requests.predicates import Predicates
from kpybroker.control.requests.request_log import RequestLog
from kpybroker.control.rules.entities import Array, Shape, fields_in, struct_of
from kpybroker.control.rules.parse import parse
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.schema import Message
from tests.support.brokers.running_broker import running_broker


class Faulty:
    """The faults and the log of the broker `self.broker`."""

    broker: Broker

    def __init__(self) -> None:
        self.rules = FaultRules()
        self.handles = self.rules.handles
        self.predicates = Predicates()
        self.log = RequestLog()

    def intercept(self, broker: Broker) -> RespondNow:
        """For `Broker(intercept=...)`."""
        return Interceptor(broker, self.rules, self.predicates, self.log).respond_now

    def add(self, act: Mapping[str, Any], trigger: Mapping[str, Any] | None = None, **match: Any) -> Fault:
        """Add a fault; keywords are its `match`."""
        rule = parse({"match": match, "act": act, "trigger": trigger or {}}, SERVED)
        return self.rules.add(rule, self.broker.clock)


@asynccontextmanager
async def faulty_broker(directory: Path, **options: Any) -> AsyncIterator[Faulty]:
    """A broker as `running_broker` makes it, and its faults."""
    faulty = Faulty()
    async with running_broker(directory, intercept=faulty.intercept, **options) as broker:
        faulty.broker = broker
        yield faulty


TWO_OF: Mapping[str, Sequence[Any]] = {
    "topic": ("orders", "others"),
    "partition": (0, 1),
    "group": ("group-1", "group-2"),
    "transactional_id": ("tx-1", "tx-2"),
    "coordinator_key": ("group-1", "group-2"),
    "producer_id": (1001, 1002),
    "user": ("alice", "bob"),
    "resource_type": (2, 2),
    "resource_name": ("orders", "others"),
    "feature": ("group.version", "transaction.version"),
}


def request_for_two(key: ApiKey, shape: Shape, version: int, topic_ids: Mapping[str, bytes]) -> Message:
    """A request with two of everything that its shape names; a topic by id where the version has no name."""
    request_class = API_INFO[key].request_class()
    request: Any = request_class()
    for kind, name in shape.scalars:
        if name in fields_in(request_class, request_class, version):
            setattr(request, name, TWO_OF[kind][0])
    _fill(request_class, request, shape.request, version, topic_ids)
    return request  # type: ignore[no-any-return]


def _fill(
    request_class: type[Message], node: Any, arrays: Sequence[Array], version: int, topic_ids: Mapping[str, bytes]
) -> None:
    if not arrays:
        return
    level = arrays[0]
    elements = []
    for number in range(2):
        if any(name == "" for _, name in level.keys):
            elements.append(TWO_OF[level.keys[0][0]][number])
            continue
        struct = struct_of(request_class, type(node), level.name)
        element: Any = struct()
        present = fields_in(request_class, struct, version)
        for kind, name in level.keys:
            if kind == "topic_id":
                if not any(other in present for one, other in level.keys if one == "topic"):
                    element.topic_id = topic_ids[TWO_OF["topic"][number]]
            elif name in present:
                setattr(element, name, TWO_OF[kind][number])
        _fill(request_class, element, arrays[1:], version, topic_ids)
        elements.append(element)
        if not level.keys:
            break  # a log directory: one is enough
    setattr(node, level.name, elements)
