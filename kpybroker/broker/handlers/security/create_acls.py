"""CreateAcls 0-3: add ACLs; each has its own result. Asks for ALTER on the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.security.acl_messages import acls_of, message_of, require_known, require_literal
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import CLUSTER_NAME, Operation, ResourceType
from kpybroker.core.security.acls import Binding, Entry, Pattern, PatternType, Permission, by_code
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.CREATE_ACLS,
    0,
    3,
    {0: "literal patterns", 1: "prefixed patterns (KIP-290)", 2: "flexible", 3: "resource type User"},
)

Creation = CreateAclsRequest.AclCreation
Result = CreateAclsResponse.AclCreationResult


async def handle(broker: Broker, request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    """Add each ACL that is valid. Raises SECURITY_DISABLED without an authorizer."""
    budget = YieldBudget()
    for creation in request.creations:
        await budget.spend()
        require_literal(context.api_version, by_code(PatternType, creation.resource_pattern_type))
    for creation in request.creations:
        await budget.spend()
        require_known(
            creation.resource_pattern_type, creation.resource_type, creation.permission_type, creation.operation
        )
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    acls = acls_of(broker, "No Authorizer is configured.")
    bindings = []
    for creation in request.creations:
        await budget.spend()
        bindings.append(_binding(creation))
    refused = {binding: error for binding in bindings if (error := _refusal(binding.pattern)) is not None}
    valid = [binding for binding in dict.fromkeys(bindings) if binding not in refused]
    outcomes = refused | dict(zip(valid, await acls.create(valid), strict=True))
    return CreateAclsResponse(results=[_result(outcomes[binding]) for binding in bindings])


def _binding(creation: Creation) -> Binding:
    """Raises UNKNOWN_SERVER_ERROR for what only a filter may hold, as Kafka does."""
    pattern_type = by_code(PatternType, creation.resource_pattern_type)
    resource_type = by_code(ResourceType, creation.resource_type)
    operation, permission = by_code(Operation, creation.operation), by_code(Permission, creation.permission_type)
    if (
        pattern_type in (PatternType.ANY, PatternType.MATCH)
        or resource_type is ResourceType.ANY
        or operation is Operation.ANY
        or permission is Permission.ANY
    ):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Binding(
        Pattern(resource_type, creation.resource_name, pattern_type),
        Entry(creation.principal, creation.host, operation, permission),
    )


def _refusal(pattern: Pattern) -> KafkaError | None:
    if pattern.resource_type is ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        message = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        return KafkaError(ErrorCode.INVALID_REQUEST, message)
    if not pattern.name:
        return KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty resource name")
    return None


def _result(error: KafkaError | None) -> Result:
    if error is None:
        return Result()
    return Result(error_code=error.code, error_message=message_of(error))


def error_response(request: CreateAclsRequest, context: RequestContext, error: KafkaError) -> CreateAclsResponse:
    """The error at each ACL."""
    return CreateAclsResponse(results=[_result(error) for _ in request.creations])
