"""DescribeCluster 0-2: cluster id, controller, brokers, and what the client may do to the cluster (KIP-700).

Version 1 lets a client ask a KRaft controller for controllers (KIP-919); here every listener is a broker's. Version 2
can ask for fenced brokers too (KIP-1073): with ZooKeeper a broker is registered or it is not, so none is fenced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.DESCRIBE_CLUSTER,
    0,
    2,
    {0: "brokers, controller, cluster authorized operations", 1: "endpoint type", 2: "fenced brokers (KIP-1073)"},
    absent="fenced brokers: with ZooKeeper a broker is registered or it is not",
)

BROKERS, CONTROLLERS = 1, 2
NO_CONTROLLER_ID = -1
NOT_ASKED_FOR = -(2**31)


async def handle(broker: Broker, request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    """The brokers that have the client's listener, and what the client may do."""
    _check_endpoint_type(request, context)
    await broker.metadata.wait_first_update(broker.tree)
    nodes = broker.metadata.alive_nodes(context)
    controller_id = broker.metadata.controller_id
    is_listed = any(node.id == controller_id for node in nodes)
    return DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=broker.cluster_id,
        controller_id=controller_id if is_listed and controller_id is not None else NO_CONTROLLER_ID,
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=node.id, host=node.host, port=node.port, rack=node.rack
            )
            for node in nodes
        ],
        cluster_authorized_operations=_authorized_operations(request, context),
    )


def _check_endpoint_type(request: DescribeClusterRequest, context: RequestContext) -> None:
    if request.endpoint_type == BROKERS:
        return
    if request.endpoint_type == CONTROLLERS:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
    else:
        code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"Unsupported endpoint type {request.endpoint_type}"
    raise KafkaError(ErrorCode.INVALID_REQUEST if context.api_version == 0 else code, message)


def _authorized_operations(request: DescribeClusterRequest, context: RequestContext) -> int:
    if not request.include_cluster_authorized_operations:
        return NOT_ASKED_FOR
    if not context.authorized(Operation.DESCRIBE, ResourceType.CLUSTER):
        return 0
    return context.authorized_operations(ResourceType.CLUSTER)


def error_response(
    request: DescribeClusterRequest, context: RequestContext, error: KafkaError
) -> DescribeClusterResponse:
    """The error with its message at the top of the response."""
    return DescribeClusterResponse(error_code=error.code, error_message=error.message)
