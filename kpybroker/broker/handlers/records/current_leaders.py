"""Where the current leaders are that a response names with NOT_LEADER_OR_FOLLOWER (KIP-951): Produce and Fetch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from kpybroker.broker.requests.context import RequestContext

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

E = TypeVar("E")


def node_endpoints(
    broker: Broker, context: RequestContext, partitions: Iterable[Any], make: Callable[..., E]
) -> list[E]:
    """The endpoints, in the order of ids, of all leaders in the `current_leader` of the partitions' responses.

    `make` is the response's class of an endpoint. Leaders without the client's listener are left out.
    """
    leaders = {partition.current_leader.leader_id for partition in partitions if partition.current_leader is not None}
    nodes = (broker.metadata.endpoint_for(context, leader) for leader in sorted(leaders))
    return [make(node_id=node.id, host=node.host, port=node.port, rack=node.rack) for node in nodes if node is not None]
