"""Why a cluster cannot make a change at all: what its brokers do not serve. A form says it, and its button is off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kpybroker.client.actions import configs
from kpybroker.client.actions.security.acls import ANY
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, check
from kpybroker.console.changes.change import Ask
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.messages.describe_acls import DescribeAclsRequest

SHARE_GROUPS: Final = ApiKey.SHARE_GROUP_DESCRIBE, "4.1"
STREAMS_GROUPS: Final = ApiKey.STREAMS_GROUP_DESCRIBE, "4.1"
ELECTIONS: Final = ApiKey.ELECT_LEADERS, "2.4"
MOVES: Final = ApiKey.ALTER_PARTITION_REASSIGNMENTS, "2.4"
TRANSACTIONS: Final = ApiKey.DESCRIBE_TRANSACTIONS, "3.0"
PRODUCERS: Final = ApiKey.DESCRIBE_PRODUCERS, "2.8"
USERS: Final = ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "2.7"
QUOTAS: Final = ApiKey.ALTER_CLIENT_QUOTAS, "2.6"
UNKNOWN_KIND: Final = frozenset(("INVALID_REQUEST", "UNSUPPORTED_VERSION"))
"""Of resources, to a broker that has no settings of them."""
CLUSTER: Final = 4
"""Of ACLs, which are few, in Kafka's numbers of resources."""

Served = tuple[ApiKey, str]
"""An API, and the Kafka that serves it first."""


def unserved(cluster: Cluster, wanted: Served) -> str:
    """Why what needs this API cannot be done; empty where it can, or where that is not known."""
    key, since = wanted
    try:
        with cluster.wire() as wire:
            if key in wire.any().versions:
                return ""
    except CommandError:
        return ""
    return f"its brokers do not serve {API_INFO[key].name}, which Kafka {since} and newer have"


def without_group_settings(cluster: Cluster, group: str) -> str:
    """Why groups have no settings; empty where they have, or where that is not known."""
    try:
        with cluster.wire() as wire:
            configs.entries(wire, "group", group)
    except CommandError as error:
        if error.name in UNKNOWN_KIND:
            return "its brokers know no settings of groups, which Kafka 4.0 and newer have"
    return ""


def needing(wanted: Served) -> Callable[[Ask], str]:
    """A change's `missing`, by the API that it needs."""
    return lambda ask: unserved(ask.cluster, wanted)


def without_authorizer(cluster: Cluster) -> str:
    """Why there can be no ACLs; empty where there can, or where that is not known."""
    request = DescribeAclsRequest(
        resource_type_filter=CLUSTER, pattern_type_filter=ANY, operation=ANY, permission_type=ANY
    )
    try:
        with cluster.wire() as wire:
            response = wire.any().request(ApiKey.DESCRIBE_ACLS, request)
            check(response.error_code, response.error_message)
    except CommandError as error:
        if error.name == "SECURITY_DISABLED":
            return f"its brokers have no authorizer; {error.fix}"
    return ""
