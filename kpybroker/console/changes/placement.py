"""Where replicas are and which of them leads: leaders elected, partitions moved, moves cancelled."""

from __future__ import annotations

from typing import Any, Final

from kpybroker.client.actions.placement import asking, elections, moves, plan, throttle
from kpybroker.client.actions.placement.moves import MoveOptions
from kpybroker.client.connect.errors import usage
from kpybroker.console.changes.abilities import ELECTIONS, MOVES, needing
from kpybroker.console.changes.change import (
    Ask,
    Change,
    Command,
    Field,
    Raising,
    Rows,
    Values,
    given,
    in_field,
    number,
)

REPLICAS_MAX: Final = 32767
THROTTLE_MAX: Final = 10**17
PLACES: Final = Field("places", "Topics and partitions", hint="orders, orders:0-2; several with commas.")
OF_PLACES: Final = {"UNKNOWN_TOPIC_OR_PARTITION": "places", "INVALID_REPLICA_ASSIGNMENT": "to"}
ELECTED: Final = (
    ("Topic", "topic"),
    ("#Partition", "partition"),
    ("Leader", "leader"),
    ("Replicas", "replicas"),
    ("In sync", "isr"),
    ("Status", "status"),
)
PLACE: Final = ("topic", "partition")


def _places(values: Values) -> list[str]:
    return [values["places"]] if values["places"] else []


def _page(_: Values) -> str:
    return "/replication"


# --- leaders


def _plan_election(ask: Ask, unclean: bool) -> Rows:
    with in_field("places"), ask.cluster.wire() as wire:
        return elections.election_rows(wire, _places(ask.values), unclean)


def _elect(ask: Ask, rows: Rows, unclean: bool) -> Rows:
    done = [dict(row) for row in rows]
    with ask.cluster.wire() as wire:
        elections.elect_rows(wire, done, unclean, ask.failures)
    return done


def _elect_command(values: Values, *flags: str) -> Command:
    return ["partition", "elect", *flags, "--execute"], _places(values)


ELECT: Final = Change(
    "elect",
    "Elect preferred leaders",
    "Elect these leaders",
    (PLACES._replace(placeholder="all"),),
    ELECTED,
    "Alter on the cluster, and Describe on the topics",
    lambda ask: _plan_election(ask, False),
    lambda ask, rows: _elect(ask, rows, False),
    _elect_command,
    _page,
    same=(*PLACE, "leader", "replicas"),
    blame=OF_PLACES,
    note="Each partition is led by its first replica again, if that is in sync.",
    missing=needing(ELECTIONS),
)
ELECT_UNCLEAN: Final = Change(
    "elect-unclean",
    "Elect any replica as the leader",
    "Elect, and lose records",
    (PLACES._replace(is_required=True),),
    ELECTED,
    "Alter on the cluster, and Describe on the topics",
    lambda ask: _plan_election(ask, True),
    lambda ask, rows: _elect(ask, rows, True),
    lambda values: _elect_command(values, "--unclean"),
    _page,
    same=(*PLACE, "leader", "replicas"),
    typed_again=("places",),
    blame=OF_PLACES,
    note="Only of partitions without a leader. What the elected replica does not have is lost.",
    missing=needing(ELECTIONS),
)

# --- moves


def _options(values: Values) -> MoveOptions:
    to = [values["to"]] if values["to"] else []
    replicas, rate = number(values, "replicas", 1, REPLICAS_MAX), number(values, "throttle", 1, THROTTLE_MAX)
    return MoveOptions(_places(values), to, replicas, throttle=rate)


def _plan_move(ask: Ask) -> Rows:
    options = _options(ask.values)
    with in_field("to"):
        to = plan.parse_brokers(options.to)
    with ask.cluster.wire() as wire:
        with in_field("places"):
            asking.partitions(wire, options.places)
        brokers = len(to or wire.nodes)
        if (options.replicas or 0) > brokers:
            with in_field("replicas"):
                raise usage(f"there are {brokers} brokers for {options.replicas} replicas", "ask for fewer")
        with in_field("to"):
            return moves.planned_rows(wire, options)


def _move(ask: Ask, rows: Rows) -> Rows:
    done = [dict(row) for row in rows]
    with ask.cluster.wire() as wire:
        moves.move_now(wire, done, _options(ask.values).throttle, ask.failures)
    return done


def _move_command(values: Values) -> Command:
    options = given(("--to", values["to"]), ("--replicas", values["replicas"]), ("--throttle", values["throttle"]))
    return ["partition", "move", *options, "--execute"], _places(values)


MOVE: Final = Change(
    "move",
    "Move partitions to other brokers",
    "Move these partitions",
    (
        PLACES._replace(is_required=True),
        Field("to", "To the brokers", hint="Ids with commas. Empty: spread over all.", placeholder="1,2,3"),
        Field("replicas", "Replicas of each", "number", "Empty: as many as there are.", "as many as now"),
        Field("throttle", "Bytes a second, at most", "number", "From and to each broker. Empty: no limit.", "no limit"),
    ),
    (*ELECTED[:2], ("From", "from"), ("To", "to"), ("Status", "status")),
    "Alter on the cluster, and Describe on the topics; for a throttle AlterConfigs on both",
    _plan_move,
    _move,
    _move_command,
    _page,
    same=(*PLACE, "from"),
    blame=OF_PLACES,
    note="What is there already stays. Replication shows how far the moves are, and cancels them.",
    missing=needing(MOVES),
)


def _throttle_rows(ask: Ask) -> Rows:
    with ask.cluster.wire() as wire:
        names = {topic for topic, _ in asking.partitions(wire, ())}
        found = throttle.present(wire, names, asking.moves(wire))
    keys = ("kind", "name", "key", "value")
    return [{**dict(zip(keys, one, strict=True)), "status": "would be removed", "error": None} for one in found]


def _end_throttle(ask: Ask, rows: Rows) -> Rows:
    with ask.cluster.wire() as wire:
        topics = {row["name"] for row in rows if row["kind"] == "topic"}
        throttle.end(wire, topics, asking.moves(wire), Raising())
    return [{**row, "status": "removed"} for row in rows]


END_THROTTLE: Final = Change(
    "throttle-end",
    "Remove the limits of moves that have ended",
    "Remove these limits",
    (),
    (("Of a", "kind"), ("Name", "name"), ("Key", "key"), ("Value", "value"), ("Status", "status")),
    "AlterConfigs and DescribeConfigs on the topics and the cluster, and Describe on the cluster",
    _throttle_rows,
    _end_throttle,
    lambda _: (["partition", "moves", "--end-throttle"], []),
    _page,
    same=("kind", "name", "key", "value"),
    note="Topics that still move keep theirs, and so do all brokers while anything moves.",
    missing=needing(MOVES),
)


def _cancel_rows(ask: Ask) -> Rows:
    with in_field("places"), ask.cluster.wire() as wire:
        return moves.cancel_rows(wire, _places(ask.values))


def _cancel(ask: Ask, rows: Rows) -> Rows:
    done: list[dict[str, Any]] = [dict(row) for row in rows]
    with ask.cluster.wire() as wire:
        moves.cancel_now(wire, done, ask.failures)
    return done


CANCEL: Final = Change(
    "move-cancel",
    "Cancel moves",
    "Cancel these moves",
    (PLACES._replace(placeholder="all that move"),),
    (*ELECTED[:2], ("Status", "status")),
    "Alter on the cluster, and Describe on the topics",
    _cancel_rows,
    _cancel,
    lambda values: (["partition", "cancel", "--execute"], _places(values)),
    _page,
    same=PLACE,
    blame=OF_PLACES,
    note="The partitions stay where they were; what was copied is deleted.",
    missing=needing(MOVES),
)
