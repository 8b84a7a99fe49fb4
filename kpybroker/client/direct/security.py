"""ACLs and SCRAM credentials, as confluent-kafka's ``AdminClient`` takes them.

The controller keeps both where there is ZooKeeper, and any broker forwards to it where there is none.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Final

from kpybroker.client.connect.errors import CommandError, broker_error, check
from kpybroker.client.connect.wire import WireBroker, WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kpybroker.wire.messages.create_acls import CreateAclsRequest
from kpybroker.wire.messages.delete_acls import DeleteAclsRequest
from kpybroker.wire.messages.describe_acls import DescribeAclsRequest

HASHES: Final = {1: "sha256", 2: "sha512"}
"""Of mechanisms, by the protocol's numbers."""
SALT_BYTES: Final = 32


def _controller(wire: WireCluster) -> WireBroker:
    return wire.broker(wire.controller_id) if wire.controller_id in wire.nodes else wire.any()


def create_acls(wire: WireCluster, bindings: Iterable[Any]) -> dict[Any, CommandError | None]:
    """Create ACLs: what became of each. Raises CommandError."""
    wanted = list(bindings)
    creations = [
        CreateAclsRequest.AclCreation(
            resource_type=int(one.restype.value),
            resource_name=one.name,
            resource_pattern_type=int(one.resource_pattern_type.value),
            principal=one.principal,
            host=one.host,
            operation=int(one.operation.value),
            permission_type=int(one.permission_type.value),
        )
        for one in wanted
    ]
    response = _controller(wire).request(ApiKey.CREATE_ACLS, CreateAclsRequest(creations=creations))
    return {
        one: broker_error(found.error_code, found.error_message)
        for one, found in zip(wanted, response.results, strict=True)
    }


def _filter(kind: Any, one: Any) -> Any:
    return kind(
        resource_type_filter=int(one.restype.value),
        resource_name_filter=one.name,
        pattern_type_filter=int(one.resource_pattern_type.value),
        principal_filter=one.principal,
        host_filter=one.host,
        operation=int(one.operation.value),
        permission_type=int(one.permission_type.value),
    )


def describe_acls(wire: WireCluster, wanted: Any) -> list[Any]:
    """The ACLs that a filter fits, by the names of confluent-kafka's fields; their kinds are Kafka's numbers. Raises
    CommandError, also where there is no authorizer.
    """
    response = wire.any().request(ApiKey.DESCRIBE_ACLS, _filter(DescribeAclsRequest, wanted))
    check(response.error_code, response.error_message)
    return [
        _found(acl, resource.resource_type, resource.resource_name, resource.pattern_type)
        for resource in response.resources
        for acl in resource.acls
    ]


def _found(acl: Any, kind: int, name: str, pattern: int) -> Any:
    return SimpleNamespace(
        restype=kind,
        name=name,
        resource_pattern_type=pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def delete_acls(wire: WireCluster, filters: Iterable[Any]) -> dict[Any, list[Any] | CommandError]:
    """Delete the ACLs that fit: those that were, of each filter. Raises CommandError."""
    wanted = list(filters)
    request = DeleteAclsRequest(filters=[_filter(DeleteAclsRequest.DeleteAclsFilter, one) for one in wanted])
    response = _controller(wire).request(ApiKey.DELETE_ACLS, request)
    found: dict[Any, list[Any] | CommandError] = {}
    for one, result in zip(wanted, response.filter_results, strict=True):
        errors = [broker_error(acl.error_code, acl.error_message) for acl in result.matching_acls]
        error = broker_error(result.error_code, result.error_message) or next(filter(None, errors), None)
        found[one] = error or [
            _found(acl, acl.resource_type, acl.resource_name, acl.pattern_type) for acl in result.matching_acls
        ]
    return found


def alter_credentials(wire: WireCluster, alterations: Iterable[Any]) -> Mapping[str, CommandError | None]:
    """Set and delete SCRAM credentials: what became of each user. The password stays here: what is sent is derived from
    it and a new salt. Raises CommandError.
    """
    deletions, upsertions = [], []
    for one in alterations:
        if not hasattr(one, "password"):
            deletions.append(
                AlterUserScramCredentialsRequest.ScramCredentialDeletion(
                    name=one.user, mechanism=int(one.mechanism.value)
                )
            )
            continue
        info = one.scram_credential_info
        mechanism, salt = int(info.mechanism.value), one.salt or secrets.token_bytes(SALT_BYTES)
        salted = hashlib.pbkdf2_hmac(HASHES[mechanism], one.password, salt, info.iterations)
        upsertions.append(
            AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                name=one.user, mechanism=mechanism, iterations=info.iterations, salt=salt, salted_password=salted
            )
        )
    request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    response = _controller(wire).request(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request)
    return {one.user: broker_error(one.error_code, one.error_message) for one in response.results}
