"""`quota list`, `set` and `unset`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.errors import CommandError, broker_error, check, usage
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.connect.wire import WireCluster
from kpybroker.client.show.cells import Column
from kpybroker.client.show.output import Output
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from kpybroker.wire.messages.describe_client_quotas import DescribeClientQuotasRequest

EXACT, DEFAULT, ANY = 0, 1, 2
"""How DescribeClientQuotas matches a name."""
DEFAULT_NAME: Final = "(default)"


def _name_column(kind: str) -> Column:
    return Column(kind.upper(), lambda row: _name_shown(row["entity"], kind))


QUOTAS: Final = (
    *map(_name_column, ("user", "client-id", "ip")),
    Column("KEY", "key"),
    Column("VALUE", lambda row: _number_shown(row["value"])),
)
CHANGES: Final = (*QUOTAS[:4], Column("VALUE", lambda row: _number_shown(row["value"])), Column("STATUS", "status"))


class EntityOptions(NamedTuple):
    """Whose quotas: by name, or those of all that have none."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None
    defaults: Sequence[str] = ()

    def entity(self) -> dict[str, str | None]:
        """The name by kind, None for the default. Raises CommandError for a kind that is named twice."""
        named = {"user": self.user, "client-id": self.client_id, "ip": self.ip}
        found: dict[str, str | None] = {kind: name for kind, name in named.items() if name is not None}
        for kind in self.defaults:
            if kind in found:
                raise usage(f"{kind} is named twice", f"name it with --{kind} or --default {kind}")
            found[kind] = None
        if "ip" in found and len(found) > 1:
            raise usage("an address has quotas of its own", "leave out --ip, or the others")
        return found


def _name_shown(entity: Mapping[str, str | None], kind: str) -> str | None:
    return None if kind not in entity else entity[kind] if entity[kind] is not None else DEFAULT_NAME


def _number_shown(value: float | None) -> Any:
    return int(value) if value is not None and value.is_integer() else value


def show_list(connection: Connection, options: EntityOptions, output: Output) -> int:
    """Print the quotas of all, or of entities that have these names."""
    entity = options.entity()
    with WireCluster(load(connection)) as wire:
        rows = quota_rows(wire, entity)
    output.rows(rows, QUOTAS, empty="there are no quotas")
    return 0


def quota_rows(wire: WireCluster, entity: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """A row for each entity with these parts, and each of its keys. Raises CommandError."""
    components = [
        DescribeClientQuotasRequest.ComponentData(
            entity_type=kind, match_type=DEFAULT if name is None else EXACT, match=name
        )
        for kind, name in entity.items()
    ]
    request = DescribeClientQuotasRequest(components=components, strict=False)
    response = wire.any().request(ApiKey.DESCRIBE_CLIENT_QUOTAS, request)
    check(response.error_code, response.error_message)
    rows = [
        {
            "entity": {one.entity_type: one.entity_name for one in entry.entity},
            "key": value.key,
            "value": float(value.value),
        }
        for entry in response.entries or ()
        for value in entry.values
    ]
    return sorted(rows, key=lambda row: (sorted((k, v or "") for k, v in row["entity"].items()), row["key"]))


def parse_values(texts: Sequence[str]) -> dict[str, float | None]:
    """`KEY=NUMBER` by key. Raises CommandError."""
    found: dict[str, float | None] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not key.strip() or not equals or not math.isfinite(number):
            raise usage(f"{text!r} is no quota", "write KEY=NUMBER, as in producer_byte_rate=1000000")
        if key.strip() in found:
            raise usage(f"{key.strip()} is set twice", "name each key once")
        found[key.strip()] = number
    return found


def change(
    connection: Connection, options: EntityOptions, changes: Mapping[str, float | None], dry_run: bool, output: Output
) -> int:
    """Set keys, or remove those whose value is None. Raises CommandError, and then nothing has changed."""
    with WireCluster(load(connection)) as wire:
        output.rows(change_rows(wire, options, changes, dry_run), CHANGES)
    return 0


def change_rows(
    wire: WireCluster, options: EntityOptions, changes: Mapping[str, float | None], dry_run: bool
) -> list[dict[str, Any]]:
    """Set keys, or remove those whose value is None; for a dry run have it checked.

    Raises CommandError, and then nothing has changed.
    """
    entity = options.entity()
    if not entity:
        raise usage("no one is named whose quota it is", "name --user, --client-id, --ip or --default")
    entry = AlterClientQuotasRequest.EntryData(
        entity=[
            AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()
        ],
        ops=[
            AlterClientQuotasRequest.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in changes.items()
        ],
    )
    missing = _missing(wire, entity, [key for key, value in changes.items() if value is None])
    if missing:
        raise CommandError(f"there is no quota {missing[0]} of this entity", "kpybroker quota list shows them")
    broker = wire.broker(wire.controller_id) if wire.controller_id in wire.nodes else wire.any()
    request = AlterClientQuotasRequest(entries=[entry], validate_only=dry_run)
    (result,) = broker.request(ApiKey.ALTER_CLIENT_QUOTAS, request).entries
    error = broker_error(result.error_code, result.error_message)
    if error is not None:
        raise error
    would = "would be " if dry_run else ""
    return [
        {"entity": entity, "key": key, "value": value, "status": f"{would}{'removed' if value is None else 'set'}"}
        for key, value in changes.items()
    ]


def _missing(wire: WireCluster, entity: Mapping[str, str | None], keys: Sequence[str]) -> list[str]:
    """Those keys that the entity has not: a broker removes nothing in silence."""
    if not keys:
        return []
    known = {row["key"] for row in quota_rows(wire, entity) if row["entity"] == entity}
    return [key for key in keys if key not in known]
