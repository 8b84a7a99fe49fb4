"""Who may do what: ACLs, users with SCRAM credentials, quotas. What the cluster refuses to say is a note."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka.admin import AclOperation, AclPermissionType, ResourcePatternType

from kpybroker.client.actions.security.acls import ANY, AclOptions, acl_row, matching_acls
from kpybroker.client.actions.security.users import credentials
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures, check
from kpybroker.client.connect.wire import WireCluster, WireError
from kpybroker.client.direct.cluster import DirectCluster
from kpybroker.console.queries.pages import Query, by_keys
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.describe_acls import DescribeAclsRequest
from kpybroker.wire.messages.describe_client_quotas import DescribeClientQuotasRequest

Rows = list[dict[str, Any]]

RESOURCES: Final = {2: "topic", 3: "group", 4: "cluster", 5: "transactional-id", 6: "delegation-token", 7: "user"}
"""By Kafka's numbers."""


class Access(NamedTuple):
    """Rows of each; None for what is not known."""

    acls: Rows | None
    users: Rows | None
    quotas: Rows | None


OF_ACLS: Final = ("principal", "host", "resource", "name", "pattern", "operation", "permission")
OF_USERS: Final = ("user", "mechanism", "iterations")
OF_QUOTAS: Final = ("entity", "key", "value")


def access(cluster: Cluster, wanted: Query, failures: Failures) -> Access:
    """ACLs, users and quotas in whose names the text is. Raises CommandError if no broker can be reached."""
    with cluster.wire() as wire:
        found = Access(
            _known("ACLs", lambda: acls(cluster, wire), failures),
            _known("users", lambda: [dict(row) for row in credentials(cluster, (), failures)], failures),
            _known("quotas", lambda: quotas(wire), failures),
        )
    return Access(
        _chosen(found.acls, ("principal", "name"), wanted, "sort", OF_ACLS),
        _chosen(found.users, ("user",), wanted, "sort_users", OF_USERS),
        _chosen(found.quotas, ("entity",), wanted, "sort_quotas", OF_QUOTAS),
    )


def _chosen(rows: Rows | None, names: Sequence[str], wanted: Query, field: str, columns: Sequence[str]) -> Rows | None:
    if rows is None:
        return None
    fitting = [row for row in rows if any(wanted.text in str(row[name]).lower() for name in names)]
    return wanted.sorted(field, fitting, by_keys(*columns))


def _known(what: str, ask: Callable[[], Rows], failures: Failures) -> Rows | None:
    try:
        return ask()
    except WireError:
        raise
    except CommandError as error:
        failures.add(what, error)
        return None


def acls(cluster: Cluster, wire: WireCluster) -> Rows:
    """A row for each ACL. Raises CommandError, also where there is no authorizer."""
    if not isinstance(cluster, DirectCluster):
        return [dict(acl_row(one)) for one in matching_acls(cluster, AclOptions())]
    request = DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    response = wire.any().request(ApiKey.DESCRIBE_ACLS, request)
    check(response.error_code, response.error_message)
    rows = [
        {
            "principal": acl.principal,
            "host": acl.host,
            "resource": RESOURCES.get(resource.resource_type, f"type {resource.resource_type}"),
            "name": resource.resource_name,
            "pattern": _name(ResourcePatternType, resource.pattern_type),
            "operation": _name(AclOperation, acl.operation),
            "permission": _name(AclPermissionType, acl.permission_type),
        }
        for resource in response.resources
        for acl in resource.acls
    ]
    return sorted(rows, key=lambda row: tuple(map(str, row.values())))


def _name(kind: Any, number: int) -> str:
    """Kafka's name of a number."""
    try:
        name: str = kind(number).name
    except ValueError:
        return str(number)
    return name


def quotas(wire: WireCluster) -> Rows:
    """A row for each entity and limit. Raises CommandError."""
    response = wire.any().request(ApiKey.DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest())
    check(response.error_code, response.error_message)
    rows = [
        {
            "entity": ", ".join(f"{one.entity_type} {one.entity_name or '(default)'}" for one in entry.entity),
            "of": {one.entity_type.replace("-", "_"): one.entity_name or "(default)" for one in entry.entity},
            "key": value.key,
            "value": value.value,
        }
        for entry in response.entries or []
        for value in entry.values
    ]
    return sorted(rows, key=lambda row: (row["entity"], row["key"]))
