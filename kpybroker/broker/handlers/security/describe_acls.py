"""DescribeAcls 0-3: the ACLs that a filter finds, by resource. Asks for DESCRIBE on the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.security.acl_messages import acls_of, read_filters
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.security.acls import Pattern
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.DESCRIBE_ACLS,
    0,
    3,
    {0: "literal patterns", 1: "prefixed patterns (KIP-290)", 2: "flexible", 3: "resource type User"},
)

Resource = DescribeAclsResponse.DescribeAclsResource
Description = DescribeAclsResponse.AclDescription


async def handle(broker: Broker, request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    """The ACLs that fit. Raises SECURITY_DISABLED without an authorizer."""
    (wanted,) = read_filters([request], context.api_version)
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    acls = acls_of(broker, "No Authorizer is configured on the broker")
    resources: dict[Pattern, Resource] = {}
    budget = YieldBudget()
    for pattern, entry in ((one.pattern, one.entry) for one in acls.index.matching(wanted)):
        await budget.spend()
        resource = resources.get(pattern)
        if resource is None:
            resource = resources[pattern] = Resource(
                resource_type=pattern.resource_type, resource_name=pattern.name, pattern_type=pattern.pattern_type
            )
        resource.acls.append(
            Description(
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
        )
    return DescribeAclsResponse(resources=list(resources.values()))


def error_response(request: DescribeAclsRequest, context: RequestContext, error: KafkaError) -> DescribeAclsResponse:
    """The error with its message at the top of the response."""
    return DescribeAclsResponse(error_code=error.code, error_message=error.message)
