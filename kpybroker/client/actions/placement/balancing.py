"""`cluster balance`: how much is written to what each broker leads, and other leaders where that differs too much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kpybroker.client.actions.partitions import Partition, Place
from kpybroker.client.actions.placement import asking, elections, loads, moves, throttle
from kpybroker.client.actions.placement.balance import Balance, Change, balance
from kpybroker.client.connect.errors import Failures, note
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.connect.wire import WireCluster
from kpybroker.client.show.cells import Column, Row, size
from kpybroker.client.show.output import Output

BROKERS: Final = (
    Column("BROKER", "broker"),
    Column("LEADS", "leads"),
    Column("WRITTEN", lambda row: _rate(row["written"])),
    Column("THEN", lambda row: _rate(row["then"])),
)
CHANGES: Final = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("WRITTEN", lambda row: _rate(row["written"])),
    Column("LEADER", "from"),
    Column("THEN", "to"),
    Column("COPIED", lambda row: size(row["copied"])),
    Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""),
)


class BalanceOptions(NamedTuple):
    """What `cluster balance` is asked for."""

    seconds: float
    copies: bool = False
    throttle: int | None = None
    execute: bool = False


def run(connection: Connection, options: BalanceOptions, output: Output) -> int:
    """Measure, show who leads how much and who should, and with `execute` make it so."""
    failures = Failures()
    with WireCluster(load(connection)) as wire:
        partitions = asking.partitions(wire, ())
        if output.is_table:
            note(f"measuring what is written, for {options.seconds:g} s")
        measured = loads.measure(wire, partitions, options.seconds, failures)
        if measured is None:
            return moves.INTERRUPTED
        plan = balance(partitions, measured.written, sorted(wire.nodes), copies=options.copies)
        rows = [_row(change, measured) for change in plan.changes]
        code = 0
        if options.execute and rows and not failures.count:
            code = _execute(wire, partitions, plan.changes, rows, options, failures)
    _show(plan, partitions, rows, output)
    if rows and not options.execute:
        note(moves.DRY_RUN)
    return code or failures.exit_code()


def _row(change: Change, measured: loads.Measured) -> dict[str, Any]:
    place = change.partition.place
    return {
        "topic": place[0],
        "partition": place[1],
        "written": round(measured.written[place]),
        "from": change.partition.leader,
        "to": change.leader,
        "replicas": change.replicas,
        "copied": measured.sizes[place] if change.is_copied else 0,
        "status": "would change",
        "error": None,
    }


def _show(plan: Balance, partitions: Mapping[Place, Partition], rows: Sequence[Row], output: Output) -> None:
    leads = Counter(one.leader for one in partitions.values())
    brokers = [
        {"broker": broker, "leads": leads[broker], "written": round(before), "then": round(plan.after[broker])}
        for broker, before in plan.before.items()
    ]
    if not output.is_table:
        output.data({"brokers": brokers, "changes": [dict(row) for row in rows]})
        return
    output.sections([output.text(brokers, BROKERS), output.text(rows, CHANGES) if rows else ""])
    if not rows:
        note("no other leader would make this more even; without --copy only brokers that have a replica can lead")


def _execute(
    wire: WireCluster,
    partitions: Mapping[Place, Partition],
    changes: Sequence[Change],
    rows: Sequence[dict[str, Any]],
    options: BalanceOptions,
    failures: Failures,
) -> int:
    """Make the new leader the first replica, wait until it is one, and elect it; the exit code of an interrupt."""
    current = {one.partition.place: one.partition.replicas for one in changes}
    wanted = {one.partition.place: one.replicas for one in changes}
    by_place = {(row["topic"], row["partition"]): row for row in rows}
    moving = moves.begin(wire, current, wanted, rows, options.throttle, failures)
    if not moves.wait(wire, moving):
        note("the moves go on; then kpybroker partition elect --execute makes the first replicas lead")
        return moves.INTERRUPTED
    if options.throttle is not None:
        throttle.end(wire, {topic for topic, _ in wanted}, asking.moves(wire), failures)
    places = [f"{topic}:{number}" for topic, number in moving]
    elected = elections.election_rows(wire, places, False) if places else []
    elections.elect_rows(wire, elected, False, failures)
    failed = {(row["topic"], row["partition"]): row["error"] for row in elected if row["error"]}
    for place in moving:
        by_place[place]["error"] = failed.get(place)
        by_place[place]["status"] = "failed" if place in failed else "changed"
    return 0


def _rate(count: float) -> str:
    return f"{size(round(count))}/s"
