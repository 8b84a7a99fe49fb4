"""DeleteAcls 0-3: remove what filters find; each filter's result names the ACLs. Asks for ALTER on the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.security.acl_messages import acls_of, message_of, read_filters
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker
    from kpybroker.broker.security.acls import Deleted

LEDGER = Ledger(
    ApiKey.DELETE_ACLS,
    0,
    3,
    {0: "literal patterns", 1: "prefixed patterns (KIP-290)", 2: "flexible", 3: "resource type User"},
)

Result = DeleteAclsResponse.DeleteAclsFilterResult
MatchingAcl = DeleteAclsResponse.DeleteAclsMatchingAcl


async def handle(broker: Broker, request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    """Remove each ACL that a filter finds. Raises SECURITY_DISABLED without an authorizer."""
    filters = read_filters(request.filters, context.api_version)
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    acls = acls_of(broker, "No Authorizer is configured.")
    return DeleteAclsResponse(
        filter_results=[
            Result(error_message=None, matching_acls=[_matching(one) for one in found])
            for found in await acls.delete(filters)
        ]
    )


def _matching(deleted: Deleted) -> MatchingAcl:
    (pattern, entry), error = (deleted.binding.pattern, deleted.binding.entry), deleted.error
    return MatchingAcl(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else message_of(error),
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


def error_response(request: DeleteAclsRequest, context: RequestContext, error: KafkaError) -> DeleteAclsResponse:
    """The error at each filter."""
    result = Result(error_code=error.code, error_message=message_of(error))
    return DeleteAclsResponse(filter_results=[result for _ in request.filters])
