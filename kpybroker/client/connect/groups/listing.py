"""The groups of kinds that librdkafka does not list: share groups and streams groups, by ListGroups with their types.

A broker that does not serve these kinds has none of them, without an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from kpybroker.client.connect import sasl
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures, check, note
from kpybroker.client.connect.groups.raw_groups import RawGroup
from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.list_groups import ListGroupsRequest

SHARE: Final = "share"
STREAMS: Final = "streams"
DESCRIBED_BY: Final = {SHARE: ApiKey.SHARE_GROUP_DESCRIBE, STREAMS: ApiKey.STREAMS_GROUP_DESCRIBE}
"""A broker that serves a kind serves this."""
TYPED: Final = 5
"""The version of ListGroups that has types."""
ABSENT: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
"""There is no group of the kind, of that name."""


def can_ask(settings: Settings) -> bool:
    """Whether our own connections can log in: they know fewer mechanisms than librdkafka."""
    return not settings.protocol.startswith("SASL") or sasl.is_known(settings.properties)


def listed(cluster: Cluster, failures: Failures) -> dict[str, RawGroup]:
    """The groups of these kinds by name; only what a listing has of them. None, and a note, if we cannot log in."""
    if not can_ask(cluster.settings):
        mechanism = sasl.mechanism(cluster.settings.properties)
        note(f"note: with sasl.mechanism={mechanism} share and streams groups are not listed")
        return {}
    try:
        with cluster.wire() as wire:
            return _listed(wire, failures)
    except CommandError as error:
        failures.add("share and streams groups were not listed", error)
        return {}


def _listed(wire: WireCluster, failures: Failures) -> dict[str, RawGroup]:
    found: dict[str, RawGroup] = {}
    types = [kind for kind, key in DESCRIBED_BY.items() if key in wire.any().versions]
    for node_id in sorted(wire.nodes) if types else ():
        try:
            broker = wire.broker(node_id)
            if broker.version_of(ApiKey.LIST_GROUPS) < TYPED:
                continue
            response = broker.request(ApiKey.LIST_GROUPS, ListGroupsRequest(types_filter=types))
            check(response.error_code)
        except CommandError as error:
            failures.add(f"broker {node_id} did not list its {' and '.join(types)} groups", error)
            continue
        found |= {one.group_id: RawGroup(one.group_state, one.group_type, "", -1, []) for one in response.groups}
    return found


def described(
    wire: WireCluster, kind: str, names: Iterable[str], describe: Callable[[WireCluster, str], RawGroup | None]
) -> dict[str, RawGroup | CommandError]:
    """Those of these names that are groups of the kind. Raises CommandError if the cluster cannot be reached.

    `describe` returns None for any other group; a CommandError that it raises is kept.
    """
    found: dict[str, RawGroup | CommandError] = {}
    if DESCRIBED_BY[kind] not in wire.any().versions:
        return {}
    for name in names:
        try:
            one = describe(wire, name)
        except CommandError as error:
            found[name] = error
        else:
            if one is not None:
                found[name] = one
    return found
