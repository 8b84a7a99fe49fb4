"""Groups for tests of assignors: written down as text, or random; and what must hold of each assignment.

In texts a topic is one digit. `1 2 | 1:0,1` subscribes to topics 1 and 2 and owns two partitions of topic 1; a share is
`1:0,1 2:0`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import strategies as st

from kpybroker.core.assignors.values import (
    Assignment,
    Assignor,
    Member,
    MemberId,
    Members,
    Partitions,
    TopicId,
    Topics,
    run_to_end,
)

TOPICS_MAX, MEMBERS_MAX, PARTITIONS_MAX = 5, 6, 9


def topic(digit: str) -> TopicId:
    return digit.encode() * 16


def topics(counts: Mapping[str, int]) -> Topics:
    return {topic(digit): count for digit, count in counts.items()}


def member(text: str, instance_id: str | None = None) -> Member:
    subscribed, _, owned = text.partition("|")
    return Member(instance_id, frozenset(map(topic, subscribed.split())), _partitions(owned))


def members(**texts: str) -> Members:
    return {member_id: member(text) for member_id, text in texts.items()}


def assigned(assignor: Assignor, group: Members, counts: Mapping[str, int]) -> dict[MemberId, str]:
    """The shares as texts."""
    assignment = run_to_end(assignor(group, topics(counts)))
    return {member_id: _text(share) for member_id, share in assignment.items()}


def _partitions(text: str) -> Partitions:
    pairs = (item.split(":") for item in text.split())
    return {topic(digit): frozenset(map(int, indexes.split(","))) for digit, indexes in pairs}


def _text(share: Partitions) -> str:
    return " ".join(f"{key[:1].decode()}:{','.join(map(str, sorted(share[key])))}" for key in sorted(share))


@st.composite
def random_groups(draw: st.DrawFn, same_subscription: bool = False) -> tuple[dict[MemberId, Member], Topics]:
    """Members that own anything: too much, too little, of topics that are gone, partitions beyond the end."""
    digits = [str(digit) for digit in range(draw(st.integers(1, TOPICS_MAX)))]
    counts = topics({digit: draw(st.integers(0, PARTITIONS_MAX)) for digit in digits})
    subscriptions = st.frozensets(st.sampled_from([*map(topic, digits), topic("x")]))
    one = draw(subscriptions)
    group: dict[MemberId, Member] = {}
    owned = _divided(draw, counts)
    for number in range(draw(st.integers(1, MEMBERS_MAX))):
        subscribed = one if same_subscription else draw(subscriptions)
        instance_id = draw(st.none() | st.just(f"i{9 - number}"))
        group[f"m{number}"] = Member(instance_id, subscribed, owned.get(number, {}))
    return group, counts


def _divided(draw: st.DrawFn, counts: Topics) -> dict[int, Partitions]:
    """What each of the members owns: no partition has two owners, some have none, some are gone."""
    partitions = [(key, index) for key, count in (*counts.items(), (topic("y"), 2)) for index in range(count + 1)]
    drawn = draw(st.binary(min_size=len(partitions), max_size=len(partitions)))  # much faster than a list of integers
    owned: dict[int, dict[TopicId, frozenset[int]]] = {}
    for (key, index), byte in zip(partitions, drawn, strict=True):
        of_owner = owned.setdefault(byte % (MEMBERS_MAX + 1), {})
        of_owner[key] = of_owner.get(key, frozenset()) | {index}
    owned.pop(MEMBERS_MAX, None)
    return dict(owned)


def check_valid(group: Members, counts: Topics, assignment: Assignment) -> None:
    """Only subscribed topics, and each partition of a subscribed topic exactly once."""
    assert assignment.keys() == group.keys()
    for member_id, share in assignment.items():
        assert share.keys() <= group[member_id].topics
        assert all(share.values())
    subscribed = frozenset().union(*(each.topics for each in group.values()))
    wanted = Counter((key, index) for key in subscribed for index in range(counts.get(key, 0)))
    assert wanted == Counter(
        (key, index) for share in assignment.values() for key, indexes in share.items() for index in indexes
    )


def load(share: Partitions) -> int:
    return sum(map(len, share.values()))


def kept(group: Members, assignment: Assignment) -> int:
    """How many partitions stay with their owners."""
    return sum(
        len(indexes & group[member_id].owned.get(key, frozenset()))
        for member_id, share in assignment.items()
        for key, indexes in share.items()
    )


def owning(group: Members, assignment: Assignment) -> dict[MemberId, Member]:
    """The group once it has that assignment."""
    return {
        member_id: Member(each.instance_id, each.topics, assignment[member_id]) for member_id, each in group.items()
    }


def check_settled(assignor: Assignor, group: Members, counts: Topics) -> None:
    """Once the group has its assignment, it gets the very same objects again."""
    settled = owning(group, run_to_end(assignor(group, counts)))
    again = run_to_end(assignor(settled, counts))
    assert all(again[member_id] is each.owned for member_id, each in settled.items())


def unbalanced(group: Members, assignment: Assignment) -> list[TopicId]:
    """Topics of which a partition could move to a subscriber with fewer, and the balance would be better."""
    loads = {member_id: load(share) for member_id, share in assignment.items()}
    return [
        key
        for giver, share in assignment.items()
        for key in share
        if loads[giver] - min(loads[taker] for taker, each in group.items() if key in each.topics) > 1
    ]
