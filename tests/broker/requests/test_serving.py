"""Every event in every state of a connection: where it leads and what is done, or that it is illegal."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

import pytest

from kpybroker.broker.network.response import Response
from kpybroker.broker.requests.serving import (
    CLOSED,
    LEGAL,
    MUTED,
    READING,
    REQUESTS_AT_ONCE,
    RESPONDING,
    SENDING,
    SUSPENDED,
    Event,
    State,
)
from tests.broker.requests.serving_client import (
    BIG,
    DEADLINE,
    MADE,
    Client,
    behind,
    left,
    ready,
    requested,
    responded,
    responding,
    sending_rest,
    suspended,
    wait_is_over,
)
from tests.support.network.echo_server import framed


class Case(NamedTuple):
    """In `state`, or as `made` makes it, `event` by `call`: the state that follows, what is asked of the task and the
    stream, what is sent, and what the call returns.
    """

    state: State
    event: Event
    call: Callable[[Client], Any]
    then: State
    asked: str = ""
    sent: bytes = b""
    returns: Any = None
    made: Callable[[Client], None] | None = None


def whole(*words: bytes) -> bytes:
    return b"".join(map(framed, words))


READY, REQUEST, RESPONSE, SENT = Event.READY, Event.REQUEST, Event.RESPONSE, Event.SENT
DUE, LEFT, MUTE, CLOSE = Event.DEADLINE, Event.LEFT, Event.MUTE, Event.CLOSE
NOW = [b"now%d" % number for number in range(REQUESTS_AT_ONCE + 2)]

CASES = [
    # reading
    Case(READING, READY, lambda c: ready(c), READING, returns=True),
    Case(READING, READY, lambda c: ready(c, b"now1", b"now2"), READING, "", whole(b"now1", b"now2"), True),
    Case(READING, READY, lambda c: ready(c, *NOW), READING, "poke", whole(*NOW[:REQUESTS_AT_ONCE]), True),
    Case(READING, READY, lambda c: ready(c, ended=True), READING, returns=False),
    Case(READING, READY, lambda c: ready(c, b"now1", b"task"), RESPONDING, "", whole(b"now1"), False),
    Case(READING, READY, lambda c: ready(c, b"now1", b"wait", b"now2"), SUSPENDED, "wake_at 7", whole(b"now1"), True),
    Case(READING, READY, lambda c: ready(c, BIG), READING, "want_data on_sent", whole(BIG), True),
    Case(READING, READY, lambda c: ready(c, BIG, room=9), SENDING, "want_room", whole(BIG)[:9], True),
    Case(READING, READY, lambda c: ready(c, b"now1", room=3), SENDING, "want_room", whole(b"now1")[:3], True),
    Case(READING, READY, lambda c: ready(c, b"now1", b"cold"), SENDING, "", whole(b"now1") + b"\0\0\0\4", False),
    Case(READING, READY, lambda c: ready(c, b"mute", b"now1"), MUTED, "on_sent wake_at 7", whole(b"mute"), True),
    Case(READING, REQUEST, lambda c: requested(c, b"now1"), READING, "", whole(b"now1")),
    Case(READING, REQUEST, lambda c: requested(c, b"task"), RESPONDING),
    Case(READING, REQUEST, lambda c: requested(c, b"wait"), SUSPENDED, "wake_at 7"),
    Case(READING, REQUEST, lambda c: requested(c, b"mute"), MUTED, "want_data on_sent wake_at 7", whole(b"mute")),
    Case(READING, REQUEST, lambda c: requested(c, BIG, room=9), SENDING, "want_room", whole(BIG)[:9]),
    Case(READING, LEFT, left, READING),
    Case(READING, LEFT, lambda c: left(c, was_reset=True), READING),
    Case(READING, MUTE, lambda c: c.serving.mute(DEADLINE), MUTED, "wake_at 7"),
    Case(READING, CLOSE, lambda c: c.serving.on_close(), CLOSED),
    # responding: in the task
    Case(RESPONDING, RESPONSE, Client.awaits, READING, "want_data on_sent", whole(b"task")),
    Case(RESPONDING, RESPONSE, Client.awaits, READING, "", whole(b"late"), None, behind(b"late")),
    Case(RESPONDING, RESPONSE, lambda c: responded(c, b"task"), RESPONDING),
    Case(RESPONDING, RESPONSE, lambda c: responded(c, b"wait"), SUSPENDED, "wake_at 7"),
    Case(RESPONDING, RESPONSE, lambda c: responded(c, b"mute"), MUTED, "want_data on_sent wake_at 7", whole(b"mute")),
    Case(RESPONDING, RESPONSE, lambda c: responded(c, BIG, room=9), SENDING, "want_room", whole(BIG)[:9]),
    Case(RESPONDING, RESPONSE, lambda c: responded(c, b"now1", room=2), SENDING, "want_room", whole(b"now1")[:2]),
    Case(RESPONDING, RESPONSE, lambda c: responded(c, b"cold"), SENDING, "", b"\0\0\0\4"),
    Case(RESPONDING, LEFT, left, RESPONDING),
    Case(RESPONDING, CLOSE, lambda c: c.serving.on_close(), CLOSED),
    # suspended: in no task
    Case(SUSPENDED, READY, lambda c: ready(c, b"now1"), SUSPENDED, "mute", returns=True),
    Case(SUSPENDED, READY, wait_is_over, READING, "poke resumed on_sent", whole(b"wait"), True),
    Case(SUSPENDED, DUE, lambda c: c.serving.on_deadline(), SUSPENDED),
    Case(SUSPENDED, LEFT, left, SUSPENDED, "end_unless_it_stays"),
    Case(SUSPENDED, LEFT, lambda c: left(c, b"now1"), SUSPENDED, "end_unless_it_stays"),
    Case(SUSPENDED, LEFT, lambda c: left(c, was_reset=True), SUSPENDED, "end"),
    Case(SUSPENDED, CLOSE, lambda c: c.serving.on_close(), CLOSED, "dropped"),
    # sending: what follows is known already
    Case(SENDING, READY, lambda c: ready(c, room=0), SENDING, "", whole(BIG)[:10], True),
    Case(SENDING, READY, lambda c: ready(c), READING, "want_data on_sent", whole(BIG), True),
    Case(SENDING, READY, lambda c: ready(c, b"now1"), READING, "want_data on_sent", whole(BIG, b"now1"), True),
    Case(SENDING, READY, ready, RESPONDING, "want_data", whole(b"now1"), False, sending_rest(b"task")),
    Case(SENDING, READY, ready, SUSPENDED, "want_data wake_at 7 mute", whole(b"now1"), True, sending_rest(b"wait")),
    Case(SENDING, READY, ready, MUTED, "want_data mute", whole(b"now1", b"mute"), True, sending_rest(b"mute")),
    Case(
        *(SENDING, READY, wait_is_over, SENDING, "poke", whole(b"now1")[:5], True),
        sending_rest(b"wait", room=0),
    ),
    Case(SENDING, SENT, Client.finishes, READING, "want_data on_sent", whole(BIG)),
    Case(SENDING, SENT, Client.finishes, RESPONDING, "want_data", whole(b"now1"), None, sending_rest(b"task")),
    Case(SENDING, SENT, Client.finishes, SUSPENDED, "want_data wake_at 7", whole(b"now1"), None, sending_rest(b"wait")),
    Case(SENDING, LEFT, left, SENDING, sent=whole(BIG)[:10]),
    Case(SENDING, CLOSE, lambda c: c.serving.on_close(), CLOSED, "on_sent", whole(BIG)[:10]),
    # muted
    Case(MUTED, READY, lambda c: ready(c, b"now1"), MUTED, "mute", whole(b"mute"), True),
    Case(MUTED, DUE, lambda c: c.serving.on_deadline(), READING, sent=whole(b"mute")),
    Case(MUTED, LEFT, left, MUTED, "end", whole(b"mute")),
    Case(MUTED, LEFT, lambda c: left(c, b"now1"), MUTED, sent=whole(b"mute")),
    Case(MUTED, LEFT, lambda c: left(c, b"now1", was_reset=True), MUTED, "end", whole(b"mute")),
    Case(MUTED, MUTE, lambda c: c.serving.mute(9.0), MUTED, "wake_at 9", whole(b"mute")),
    Case(MUTED, CLOSE, lambda c: c.serving.on_close(), CLOSED, sent=whole(b"mute")),
    # closed
    Case(CLOSED, LEFT, left, CLOSED),
    Case(CLOSED, MUTE, lambda c: c.serving.mute(DEADLINE), CLOSED),
]

CALLS: dict[Event, Callable[[Client], Any]] = {
    READY: lambda client: client.serving.on_ready(),
    REQUEST: lambda client: client.serving.on_request(bytearray(b"now")),
    RESPONSE: lambda client: client.serving.on_response(Response(framed(b"now"))),
    SENT: lambda client: client.serving.on_sent(),
    DUE: lambda client: client.serving.on_deadline(),
    LEFT: lambda client: client.serving.on_left(False),
    MUTE: lambda client: client.serving.mute(DEADLINE),
    CLOSE: lambda client: client.serving.on_close(),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.state.value}-{case.event.value}-{case.then.value}")
def test_where_an_event_leads_and_what_is_done(case: Case) -> None:
    client = Client()
    (case.made or MADE[case.state])(client)
    assert client.serving.state is case.state
    client.asked.clear()
    assert case.call(client) is case.returns
    assert client.serving.state is case.then
    assert " ".join(client.asked) == case.asked
    assert bytes(client.wire.sent) == case.sent
    assert case.then in LEGAL[case.event][case.state]
    client.ends()


@pytest.mark.parametrize("state", State, ids=lambda state: state.value)
@pytest.mark.parametrize("event", Event, ids=lambda event: event.value)
def test_every_pair_has_a_case_or_is_illegal(state: State, event: Event) -> None:
    has_case = any((case.state, case.event) == (state, event) for case in CASES)
    assert has_case == (state in LEGAL[event])
    if not has_case:
        client = Client()
        MADE[state](client)
        before = list(client.asked), bytes(client.wire.sent), client.serving.state
        with pytest.raises(AssertionError):
            CALLS[event](client)
        assert (list(client.asked), bytes(client.wire.sent), client.serving.state) == before
        client.ends()


def test_every_state_that_may_follow_has_a_case() -> None:
    """Except those that a request behind another one leads to: these are in `test_whatever_happens_...`."""
    shown = {(case.state, case.event, case.then) for case in CASES}
    of_rows = {(READING, READY), (READING, REQUEST), (RESPONDING, RESPONSE), (SUSPENDED, DUE), (MUTED, DUE)}
    for state, event in of_rows:
        for then in LEGAL[event][state]:
            assert (state, event, then) in shown


@pytest.mark.parametrize("serves_rest", [True, False])
@pytest.mark.parametrize("words", [(), (b"now1",)])
def test_the_task_is_left_within_may_leave_only(serves_rest: bool, words: tuple[bytes, ...]) -> None:
    client = Client()
    responding(client)
    client.asked.clear()
    with client.serving.may_leave(serves_rest=serves_rest):
        left(client, *words)
    ends = [] if serves_rest and words else ["end_unless_it_stays"]
    assert client.asked == ["heed_end", *ends, "ignore_end", *(["stay"] if ends else [])]
    assert not client.serving.is_leaving
    client.ends()


def test_a_leaving_client_whose_wait_is_over_stays() -> None:
    client = Client()
    suspended(client)
    left(client)
    assert client.serving.is_leaving
    client.asked.clear()
    wait_is_over(client)
    assert client.asked == ["poke", "stay", "resumed", "on_sent"]
    assert not client.serving.is_leaving


KINDS = [
    b"now%d",
    b"task%d",
    b"late%d",
    b"wait%d",
    b"big%d" + bytes(60),
    b"cold%d",
    b"mute%d",
    b"big%d mute" + bytes(60),
]


@pytest.mark.parametrize("seed", range(100))
def test_whatever_happens_leads_where_it_may_and_responses_are_in_order(seed: int) -> None:
    """Any legal events, whatever the client sends and takes: each response once, in order, and all of it."""
    chance = random.Random(seed)
    client = Client()
    serving = client.serving
    words = [chance.choice(KINDS) % number for number in range(40)]
    left_to_send = list(words)

    def step(event: Event, call: Callable[[], Any]) -> Any:
        before = serving.state
        result = call()
        assert serving.state in LEGAL[event][before]
        return result

    for _ in range(100_000):
        for _ in range(min(chance.randrange(4), len(left_to_send))):
            client.sends(left_to_send.pop(0))
        client.wire.room = chance.choice([0, 3, 50, 10**6])
        if client.waits and chance.random() < 0.4:
            client.waits.pop(0).end()
        if chance.random() < 0.05:
            step(LEFT, lambda: serving.on_left(chance.random() < 0.5))
        if serving.deadline < inf and chance.random() < 0.3:
            step(DUE, serving.on_deadline)
        if serving.state is RESPONDING:
            step(RESPONSE, client.awaits)
        elif serving.is_held_up or (not step(READY, serving.on_ready) and serving.state is SENDING):
            step(SENT, client.finishes)
        if not left_to_send and len(client.wire.sent) >= len(whole(*words)):
            break
    assert bytes(client.wire.sent) == whole(*words)
    step(CLOSE, serving.on_close)
    assert client.asked.count("on_sent") == sum(not word.startswith((b"now", b"late")) for word in words)


@pytest.mark.parametrize("seed", range(30))
def test_a_connection_that_ends_in_any_state_gives_back_what_it_holds(seed: int) -> None:
    chance = random.Random(seed)
    client = Client()
    serving = client.serving
    memory = serving._memory
    client.wire.room = chance.choice([0, 30, 200])
    for number in range(chance.randrange(12)):
        client.sends(chance.choice(KINDS) % number)
        if serving.state is RESPONDING:
            client.awaits()
        elif not serving.is_held_up:
            serving.on_ready()
        elif chance.random() < 0.5:
            client.finishes()
            client.wire.room = 20
    serving.on_close()
    assert memory.used == 0
    assert client.asked.count("resumed") + client.asked.count("dropped") == len(client.waits)
