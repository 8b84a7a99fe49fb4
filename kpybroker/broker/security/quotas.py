"""Client quotas from the tree into the broker: what the configurations of users, client ids and addresses set.

`apply` is called with each of them, at the start and after each change. As long as none sets a quota the broker's
`quotas` is None, and requests are not counted. Values that cannot be read are reported and left out.

Kafka's ``QuotaConfigHandler`` and ``IpConfigHandler``. The rules are in `core.security.quotas`, counting is in
`requests.metering` and, for connections, in `requests.connection_limits`.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kpybroker.broker.requests.connection_limits import resolve
from kpybroker.core.security.quotas import (
    CLIENT_QUOTA_KEYS,
    CONNECTION_CREATION_RATE,
    DEFAULT,
    INTEGER_KEYS,
    ClientQuotas,
    Entity,
    Name,
)
from kpybroker.wire import znodes

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.requests.connection_limits import ConnectionLimits

logger = logging.getLogger("kafka.server.ClientQuotaManager")


class Change(NamedTuple):
    """The configuration of one entity as it is now; `entity` is its path below the type, sanitized."""

    entity_type: str
    entity: str
    props: Mapping[str, str]


def apply(host: Host, limits: ConnectionLimits, change: Change) -> None:
    """Take over what an entity sets now."""
    if change.entity_type == znodes.CONFIG_IPS:
        _apply_address(host, limits, change)
        return
    entity = _entity(change)
    found = _quotas(change, CLIENT_QUOTA_KEYS)
    quotas = host.quotas
    if quotas is None:
        if not found:
            return
        config = host.config
        quotas = ClientQuotas(
            config.get_int("quota.window.num"),
            config.get_int("quota.window.size.seconds") * 1000,
            config.get_int("controller.quota.window.num"),
            config.get_int("controller.quota.window.size.seconds") * 1000,
        )
    quotas.set(entity, found)
    host.quotas = quotas if len(quotas) else None
    logger.info("Quotas of %s/%s are now %s", change.entity_type, change.entity, found or "none")


def _entity(change: Change) -> Entity:
    if change.entity_type == znodes.CONFIG_CLIENTS:
        return Entity(None, _name(change.entity))
    user, _, client_id = change.entity.partition("/clients/")
    return Entity(_name(user), _name(client_id) if client_id else None)


def _name(sanitized: str) -> Name:
    return DEFAULT if sanitized == znodes.CONFIG_DEFAULT_ENTITY else znodes.desanitize(sanitized)


def _quotas(change: Change, keys: Iterable[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for key in keys:
        text = change.props.get(key)
        if text is None:
            continue
        try:
            found[key] = int(text) if key in INTEGER_KEYS else float(text)
        except ValueError:
            logger.error("%s of %s/%s is not a number: %r", key, change.entity_type, change.entity, text)
    return found


def _apply_address(host: Host, limits: ConnectionLimits, change: Change) -> None:
    rate = _quotas(change, (CONNECTION_CREATION_RATE,)).get(CONNECTION_CREATION_RATE)
    whole = None if rate is None else int(rate)
    if change.entity == znodes.CONFIG_DEFAULT_ENTITY:
        limits.set_default_ip_rate(whole)
        return
    limits.host_rates[change.entity] = whole
    if _is_address(change.entity):
        limits.set_ip_rate(change.entity, whole)
    else:
        host.spawn("ip-quota", _resolve, limits, change.entity)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


async def _resolve(limits: ConnectionLimits, name: str) -> None:
    """Limit the first address of a host, to what is wanted by then: another change may have been faster."""
    try:
        address = await resolve(name)
    except OSError as error:
        logger.error("Cannot limit the connections of %s: %s", name, error)
        return
    rate = limits.host_rates[name]
    logger.info("Maximum connection creation rate of /%s is now %s", address, "the default" if rate is None else rate)
    limits.set_ip_rate(address, rate)
