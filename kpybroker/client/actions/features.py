"""`feature list`, `upgrade` and `downgrade`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.errors import WITHOUT_CONTROLLER, CommandError, Failures, broker_error, note, usage
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.connect.wire import SOFTWARE, WireBroker, WireCluster
from kpybroker.client.show.cells import Column
from kpybroker.client.show.output import Output
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.update_features import UpdateFeaturesRequest

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
"""Types of UpdateFeatures."""
LEVEL_MAX: Final = 2**15 - 1

FEATURES: Final = (
    Column("FEATURE", "feature"),
    Column("FINALIZED", "finalized"),
    Column("SUPPORTED", lambda row: _range_text(row["supported"])),
)
CHANGES: Final = (Column("FEATURE", "feature"), Column("FROM", "from"), Column("TO", "to"))


class Known(NamedTuple):
    """What a broker says of features: the levels that it supports, those that are finalized, and their epoch."""

    supported: Mapping[str, tuple[int, int]]
    finalized: Mapping[str, int]
    epoch: int


def show_list(connection: Connection, output: Output) -> int:
    """Print the features that any broker supports, or that are finalized."""
    failures = Failures()
    with WireCluster(load(connection)) as wire:
        known = _of_brokers(wire, failures)
    latest = max(known.values(), key=lambda one: one.epoch, default=Known({}, {}, -1))
    names = sorted({name for one in known.values() for name in one.supported} | latest.finalized.keys())
    rows = [_row(name, known, latest.finalized.get(name, 0)) for name in names]
    if output.is_table:
        output.rows(rows, FEATURES, empty="the brokers support no features")
        note(f"epoch {latest.epoch}")
    else:
        output.data({"epoch": latest.epoch, "features": rows})
    return failures.exit_code()


def _of_brokers(wire: WireCluster, failures: Failures) -> dict[int, Known]:
    known = {}
    for node_id in sorted(wire.nodes):
        try:
            known[node_id] = known_by(wire.broker(node_id))
        except CommandError as error:
            failures.add(f"broker {node_id}", error)
    return known


def known_by(broker: WireBroker) -> Known:
    """What this broker says. Raises CommandError."""
    request = ApiVersionsRequest(client_software_name=SOFTWARE[0], client_software_version=SOFTWARE[1])
    response = broker.request(ApiKey.API_VERSIONS, request)
    return Known(
        {one.name: (one.min_version, one.max_version) for one in response.supported_features},
        {one.name: one.max_version_level for one in response.finalized_features},
        response.finalized_features_epoch,
    )


def _row(name: str, known: Mapping[int, Known], level: int) -> dict[str, Any]:
    by_broker = {node_id: one.supported.get(name) for node_id, one in known.items()}
    return {
        "feature": name,
        "finalized": level,
        "supported": _common(by_broker.values()),
        "brokers": {str(node_id): None if levels is None else list(levels) for node_id, levels in by_broker.items()},
    }


def _common(ranges: Iterable[tuple[int, int] | None]) -> list[int] | None:
    """What all support; None where one supports nothing, or they have no level in common."""
    given = list(ranges)
    if None in given or not given:
        return None
    low = max(levels[0] for levels in given if levels is not None)
    high = min(levels[1] for levels in given if levels is not None)
    return [low, high] if low <= high else None


def _range_text(levels: list[int] | None) -> str:
    return "not by all brokers" if levels is None else f"{levels[0]} to {levels[1]}"


# --- upgrade and downgrade


def update(connection: Connection, levels: Sequence[str], kind: int, dry_run: bool, output: Output) -> int:
    """Ask the controller to finalize these levels, and print what has changed, or would change."""
    wanted = parse_levels(levels)
    failures = Failures()
    with WireCluster(load(connection)) as wire:
        controller = _controller(wire)
        before = known_by(controller).finalized
        done = _ask(controller, wanted, kind, dry_run, connection.timeout_s, failures)
    rows = [{"feature": name, "from": before.get(name, 0), "to": wanted[name]} for name in done]
    if rows or not output.is_table:
        output.rows(rows, CHANGES)
    if rows and dry_run and output.is_table:
        note("nothing was changed: leave out --dry-run to do it")
    return failures.exit_code()


def parse_levels(texts: Sequence[str]) -> dict[str, int]:
    """`group.version=1` by name. Raises a CommandError of usage."""
    levels: dict[str, int] = {}
    for text in texts:
        name, equals, level = text.partition("=")
        if not (name and equals and level.isascii() and level.isdecimal() and int(level) <= LEVEL_MAX):
            raise usage(
                f"{text!r} is no feature with its level",
                "write NAME=LEVEL, such as group.version=1; kpybroker feature list shows names and levels",
            )
        if name in levels:
            raise usage(f"{name} is named twice", "give each feature one level")
        levels[name] = int(level)
    return levels


def _controller(wire: WireCluster) -> WireBroker:
    if wire.controller_id not in wire.nodes:
        raise CommandError("there is no controller", WITHOUT_CONTROLLER)
    return wire.broker(wire.controller_id)


def _ask(
    controller: WireBroker, levels: Mapping[str, int], kind: int, dry_run: bool, timeout_s: float, failures: Failures
) -> list[str]:
    """The features that were updated; the others are in `failures`."""
    version = controller.version_of(ApiKey.UPDATE_FEATURES)
    updates = [
        UpdateFeaturesRequest.FeatureUpdateKey(
            feature=name,
            max_version_level=level,
            allow_downgrade=version == 0 and kind != UPGRADE,
            upgrade_type=kind if version else UPGRADE,
        )
        for name, level in levels.items()
    ]
    request = UpdateFeaturesRequest(timeout_ms=int(timeout_s * 1000), feature_updates=updates, validate_only=dry_run)
    response = controller.request(ApiKey.UPDATE_FEATURES, request)
    error = broker_error(response.error_code, response.error_message)
    if error is not None:
        raise error
    refused = {one.feature: broker_error(one.error_code, one.error_message) for one in response.results}
    for name, refusal in refused.items():
        if refusal is not None:
            failures.add(name, refusal)
    return [name for name in levels if refused.get(name) is None]
