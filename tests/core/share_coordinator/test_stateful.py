"""Requests, failures, snapshots and deletions in any order, and what holds after each (`harness.Harness.check`)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kpybroker.core.share_coordinator.values import ReadResult
from tests.core.share_coordinator.harness import Harness

KEYS = st.sampled_from(["g/1/0", "g/1/1", "g/2/0", "h/1/0"])
OFFSETS = st.integers(0, 12)
EPOCHS = st.integers(-1, 3)
STATES = st.sampled_from([0, 2, 4])
KINDS = [
    *(["write"] * 6 + ["init"] * 2),
    *("read", "summary", "delete", "cold", "gone 1", "reload", "hold", "release", "after 600"),
    "fail NOT_ENOUGH_REPLICAS",
]


@st.composite
def command(draw: st.DrawFn) -> str:
    """A request without its ticket, or what the shell does."""
    kind = draw(st.sampled_from(KINDS))
    match kind:
        case "init":
            return f"init {draw(KEYS)} epoch={draw(EPOCHS)} start={draw(st.integers(-1, 5))}"
        case "read" | "summary":
            return f"{kind} {draw(KEYS)} leader={draw(EPOCHS)}"
        case "write":
            first = draw(OFFSETS)
            last, state, count = first + draw(st.integers(0, 4)), draw(STATES), draw(st.integers(1, 3))
            numbers = f"epoch={draw(EPOCHS)} leader={draw(EPOCHS)} start={draw(st.integers(-1, 8))}"
            return f"write {draw(KEYS)} {numbers} {first}-{last}:{state}:{count}"
        case "delete":
            return f"delete {draw(KEYS)}"
    return kind


@given(st.lists(command(), max_size=40))
@settings(deadline=None)
def test_the_log_and_what_is_left_of_it_have_the_state(commands: list[str]) -> None:
    harness = Harness()
    for number, line in enumerate([*commands, "release"]):
        is_request = line.split()[0] in ("init", "read", "summary", "write", "delete")
        harness.perform(f"t{number}: {line}" if is_request else line)
    assert harness.replies.keys() == harness.asked, "each request has its reply"


@given(st.lists(st.tuples(OFFSETS, st.sampled_from([2, 4])), max_size=30), st.lists(st.integers(0, 30), max_size=3))
@settings(deadline=None)
def test_what_the_leader_has_written_is_read_by_the_next(writes: list[tuple[int, int]], reloads: list[int]) -> None:
    """Each offset ends in the higher of the states that were written for it, whatever was written in between."""
    harness = Harness()
    harness.perform("a: init g/1/0 epoch=1 start=0")
    expected: dict[int, int] = {}
    for number, (offset, state) in enumerate(writes):
        if number in reloads:
            harness.perform("reload")
        harness.perform(f"w{number}: write g/1/0 epoch=1 leader=0 {offset}-{offset}:{state}:1")
        expected[offset] = max(state, expected.get(offset, 0))
    harness.perform("z: read g/1/0 leader=1")
    result = harness.replies["z"]
    assert isinstance(result, ReadResult)
    assert {
        offset: batch.delivery_state for batch in result.state_batches for offset in range(batch.first, batch.last + 1)
    } == expected
