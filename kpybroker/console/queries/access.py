"""Who may do what: ACLs, users with SCRAM credentials, quotas. What the cluster refuses to say is a note."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kpybroker.client.actions.security.acls import AclOptions, acl_row, matching_acls
from kpybroker.client.actions.security.users import credentials
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures, check
from kpybroker.client.connect.wire import WireCluster, WireError
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.describe_client_quotas import DescribeClientQuotasRequest

Rows = list[dict[str, Any]]


class Access(NamedTuple):
    """Rows of each; None for what is not known."""

    acls: Rows | None
    users: Rows | None
    quotas: Rows | None


def access(cluster: Cluster, failures: Failures) -> Access:
    """ACLs, users and quotas. Raises CommandError if no broker can be reached."""
    with WireCluster(cluster.settings) as wire:
        return Access(
            _known("ACLs", lambda: [dict(acl_row(one)) for one in matching_acls(cluster, AclOptions())], failures),
            _known("users", lambda: [dict(row) for row in credentials(cluster, (), failures)], failures),
            _known("quotas", lambda: quotas(wire), failures),
        )


def _known(what: str, ask: Callable[[], Rows], failures: Failures) -> Rows | None:
    try:
        return ask()
    except WireError:
        raise
    except CommandError as error:
        failures.add(what, error)
        return None


def quotas(wire: WireCluster) -> Rows:
    """A row for each entity and limit. Raises CommandError."""
    response = wire.any().request(ApiKey.DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest())
    check(response.error_code, response.error_message)
    rows = [
        {
            "entity": ", ".join(f"{one.entity_type} {one.entity_name or '(default)'}" for one in entry.entity),
            "key": value.key,
            "value": value.value,
        }
        for entry in response.entries or []
        for value in entry.values
    ]
    return sorted(rows, key=lambda row: (row["entity"], row["key"]))
