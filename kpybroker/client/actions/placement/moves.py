"""`partition move`, `moves` and `cancel`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kpybroker.client.actions.clusters import log_dir_rows
from kpybroker.client.actions.interrupts import Interrupts
from kpybroker.client.actions.partitions import Place
from kpybroker.client.actions.placement import asking, plan, throttle
from kpybroker.client.actions.placement.asking import Move
from kpybroker.client.connect.errors import CommandError, Failures, note, usage
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.connect.wire import WireCluster
from kpybroker.client.show.cells import Column, Row, size
from kpybroker.client.show.output import Output

DRY_RUN: Final = "dry run: nothing was changed; add --execute to do it"
INTERRUPTED: Final = 130
EVERY_S: Final = 1.0
CLEAR: Final = "\r\x1b[K"

PLANNED: Final = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("FROM", "from"),
    Column("TO", "to"),
    Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""),
)
MOVES: Final = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("REPLICAS", "replicas"),
    Column("ADDING", "adding"),
    Column("REMOVING", "removing"),
    Column("COPIED", lambda row: size(row["copied"])),
    Column("OF", lambda row: size(row["size"])),
)
CANCELLED: Final = (*PLANNED[:2], Column("STATUS", "status", style=PLANNED[4].style))


class MoveOptions(NamedTuple):
    """What `partition move` is asked for."""

    places: Sequence[str]
    to: Sequence[str] = ()
    replicas: int | None = None
    plan: str | None = None
    save: str | None = None
    throttle: int | None = None
    wait: bool = False
    execute: bool = False


def move(connection: Connection, options: MoveOptions, output: Output) -> int:
    """Move partitions, or show which would be moved."""
    given = None if options.plan is None else plan.load(_text(options.plan))
    if (given is None) == (not options.places) or (given is not None and (options.to or options.replicas)):
        raise usage("it is not clear what goes where", "name TOPIC... and --to BROKERS, or --plan FILE")
    brokers = plan.parse_brokers(options.to)
    failures = Failures()
    with WireCluster(load(connection)) as wire:
        names = options.places if given is None else sorted({topic for topic, _ in given})
        current = {place: one.replicas for place, one in asking.partitions(wire, names).items()}
        wanted = _wanted(wire, current, given, brokers, options.replicas)
        changed = {place: replicas for place, replicas in wanted.items() if list(replicas) != current[place]}
        if options.save is not None:
            _save(options.save, plan.dump({place: current[place] for place in changed}))
        rows = [_planned_row(place, current[place], replicas) for place, replicas in sorted(wanted.items())]
        code = 0
        if options.execute and changed:
            code = _execute(wire, current, changed, rows, options, failures)
        output.rows(rows, PLANNED, empty="there are no partitions")
    if not options.execute:
        note(DRY_RUN)
    return code or failures.exit_code()


def planned_rows(wire: WireCluster, options: MoveOptions) -> list[dict[str, Any]]:
    """Where partitions would go, without a plan of their own. Raises CommandError."""
    current = {place: one.replicas for place, one in asking.partitions(wire, options.places).items()}
    wanted = _wanted(wire, current, None, plan.parse_brokers(options.to), options.replicas)
    return [_planned_row(place, current[place], replicas) for place, replicas in sorted(wanted.items())]


def move_now(wire: WireCluster, rows: Sequence[dict[str, Any]], throttle_bytes: int | None, failures: Failures) -> None:
    """Ask for the moves that the rows name, and set each row's status. Raises CommandError."""
    current = {(row["topic"], row["partition"]): row["from"] for row in rows}
    changed = {(row["topic"], row["partition"]): row["to"] for row in rows if row["to"] != row["from"]}
    if changed:
        begin(wire, current, changed, rows, throttle_bytes, failures)


def _text(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise usage(f"{path} cannot be read: {reason}", "name a plan of kafka-reassign-partitions.sh") from None


def _save(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise usage(f"{path} cannot be written: {error.strerror}", "name a file that this user may write") from None


def _wanted(
    wire: WireCluster,
    current: Mapping[Place, Sequence[int]],
    given: Mapping[Place, Sequence[int]] | None,
    brokers: Sequence[int],
    replicas: int | None,
) -> Mapping[Place, Sequence[int]]:
    if given is not None:
        missing = sorted(set(given) - set(current))
        if missing:
            raise usage(f"there is no partition {missing[0][0]}-{missing[0][1]}", "kpybroker topic describe shows them")
        return given
    known = sorted(wire.nodes)
    if not brokers and replicas is None:
        raise usage("it is not said where to", "name brokers: --to 1,2,3; or a number of replicas: --replicas 3")
    unknown = [broker for broker in brokers if broker not in wire.nodes]
    if unknown:
        raise usage(f"the cluster has no broker {unknown[0]}", f"name some of these: {', '.join(map(str, known))}")
    return plan.spread(current, brokers or known, replicas)


def _planned_row(place: Place, before: Sequence[int], after: Sequence[int]) -> dict[str, Any]:
    status = "stays" if list(before) == list(after) else "would be moved"
    row: dict[str, Any] = {"topic": place[0], "partition": place[1], "from": list(before), "to": list(after)}
    return {**row, "status": status, "error": None}


def _execute(
    wire: WireCluster,
    current: Mapping[Place, Sequence[int]],
    changed: Mapping[Place, Sequence[int]],
    rows: Sequence[dict[str, Any]],
    options: MoveOptions,
    failures: Failures,
) -> int:
    """Ask for the moves, wait for them if that is wanted, and set each row's status; the exit code of an interrupt."""
    moving = begin(wire, current, changed, rows, options.throttle, failures)
    by_place = {(row["topic"], row["partition"]): row for row in rows}
    if not options.wait:
        note("to see how far they are: kpybroker partition moves")
        if options.throttle is not None:
            note("the throttle stays until it is removed: kpybroker partition moves --end-throttle")
        return 0
    if not wait(wire, moving):
        note("the moves go on; to see how far they are: kpybroker partition moves")
        return INTERRUPTED
    if options.throttle is not None:
        throttle.end(wire, {topic for topic, _ in changed}, asking.moves(wire), failures)
    _check(wire, changed, moving, by_place, failures)
    return 0


def begin(
    wire: WireCluster,
    current: Mapping[Place, Sequence[int]],
    changed: Mapping[Place, Sequence[int]],
    rows: Sequence[dict[str, Any]],
    throttle_bytes: int | None,
    failures: Failures,
) -> list[Place]:
    """Ask for the moves, slowed down before they begin; those that were not refused."""
    if throttle_bytes is not None:
        throttle.start(wire, current, changed, throttle_bytes)
    refused = asking.reassign(wire, changed, wire.timeout_s)
    by_place = {(row["topic"], row["partition"]): row for row in rows}
    for place in changed:
        error, row = refused.get(place), by_place[place]
        row["status"] = "failed" if error else "moving"
        row["error"] = failures.add(f"{place[0]}-{place[1]}", error) if error else None
    return [place for place in changed if refused.get(place) is None]


def _check(
    wire: WireCluster,
    changed: Mapping[Place, Sequence[int]],
    moving: Sequence[Place],
    by_place: Mapping[Place, dict[str, Any]],
    failures: Failures,
) -> None:
    """Whether they are where they should be: another may have cancelled or changed a move."""
    found = asking.partitions(wire, sorted({topic for topic, _ in moving})) if moving else {}
    for place in moving:
        row = by_place[place]
        is_there = place in found and found[place].replicas == list(changed[place])
        row["status"] = "moved" if is_there else "elsewhere"
        if not is_there:
            error = CommandError("it is not where it was moved to", "kpybroker topic describe shows where it is")
            row["error"] = failures.add(f"{place[0]}-{place[1]}", error)


# --- under way


def wait(wire: WireCluster, places: Sequence[Place]) -> bool:
    """Until none of them moves; False after Ctrl-C. How far it is stands in a line on a terminal."""
    is_shown = sys.stderr.isatty()
    wanted = set(places)
    last = None
    with Interrupts() as interrupts:
        while not interrupts.requested:
            ongoing = {place: one for place, one in asking.moves(wire).items() if place in wanted}
            if not ongoing:
                break
            if is_shown:
                sys.stderr.write(f"{CLEAR}{progress(wire, ongoing, len(places))}")
                sys.stderr.flush()
            elif len(ongoing) != last:
                last = len(ongoing)
                note(progress(wire, ongoing, len(places)))
            time.sleep(EVERY_S)
        if is_shown:
            sys.stderr.write(CLEAR)
        return not interrupts.requested


def progress(wire: WireCluster, ongoing: Mapping[Place, Move], count: int) -> str:
    """How many of `count` partitions are left, and how much of those is copied."""
    rows = move_rows(wire, ongoing, Failures(silent=True))
    copied = sum(row["copied"] or 0 for row in rows)
    whole = sum((row["size"] or 0) * len(row["adding"]) for row in rows)
    return f"{len(ongoing)} of {count} partitions are moving; {size(copied)} of {size(whole)} copied"


def show_moves(connection: Connection, end_throttle: bool, output: Output) -> int:
    """Print the moves that are under way; with `end_throttle`, remove throttles that no move needs any more."""
    failures = Failures()
    with WireCluster(load(connection)) as wire:
        ongoing = asking.moves(wire)
        if end_throttle:
            throttle.end(wire, {topic for topic, _ in asking.partitions(wire, ())}, ongoing, failures)
        output.rows(move_rows(wire, ongoing, failures), MOVES, empty="no partition is moving")
    return failures.exit_code()


def move_rows(wire: WireCluster, ongoing: Mapping[Place, Move], failures: Failures) -> list[Row]:
    """A row for each, with how much the new replicas have of what there is."""
    if not ongoing:
        return []
    _, replicas = log_dir_rows(wire, sorted(wire.nodes), failures)
    sizes = {(row["topic"], row["partition"], row["broker"]): row["size"] for row in replicas if not row["future"]}
    rows: list[Row] = []
    for (topic, number), one in sorted(ongoing.items()):
        held = {broker: sizes.get((topic, number, broker)) for broker in one.replicas}
        rows.append(
            {
                "topic": topic,
                "partition": number,
                "replicas": list(one.replicas),
                "adding": list(one.adding),
                "removing": list(one.removing),
                "copied": sum(held[broker] or 0 for broker in one.adding),
                "size": max((found for found in held.values() if found is not None), default=None),
            }
        )
    return rows


def cancel(connection: Connection, places: Sequence[str], execute: bool, output: Output) -> int:
    """Cancel moves: the partitions stay where they were."""
    failures = Failures()
    with WireCluster(load(connection)) as wire:
        rows = cancel_rows(wire, places)
        if execute:
            cancel_now(wire, rows, failures)
        output.rows(rows, CANCELLED, empty="no such partition is moving")
    if not execute and rows:
        note(DRY_RUN)
    return failures.exit_code()


def cancel_rows(wire: WireCluster, places: Sequence[str]) -> list[dict[str, Any]]:
    """The moves that would be cancelled: of these places, or all. Raises CommandError."""
    ongoing = asking.moves(wire)
    chosen = asking.partitions(wire, places) if places else ongoing
    wanted = [place for place in ongoing if place in chosen]
    return [{"topic": t, "partition": n, "status": "would be cancelled", "error": None} for t, n in wanted]


def cancel_now(wire: WireCluster, rows: Sequence[dict[str, Any]], failures: Failures) -> None:
    """Cancel the moves of these partitions, remove their throttle, and set each row's status. Raises CommandError."""
    if not rows:
        return
    ongoing = asking.moves(wire)
    wanted = [(row["topic"], row["partition"]) for row in rows]
    refused = asking.reassign(wire, dict.fromkeys(wanted), wire.timeout_s)
    for row, place in zip(rows, wanted, strict=True):
        error = refused.get(place)
        row["status"] = "failed" if error else "cancelled"
        row["error"] = failures.add(f"{place[0]}-{place[1]}", error) if error else None
    throttle.end(wire, {topic for topic, _ in wanted}, set(ongoing) - set(wanted), failures)
