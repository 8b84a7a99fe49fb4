"""What differs between two responses, by member, and what of it is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from compat_tests.registry.differential.allowed import ALLOWED, Allowed
from compat_tests.registry.differential.play import Response
from compat_tests.registry.differential.step import Conversation, Step

SHOWN_MAX: Final = 300
ERROR_TYPE: Final = re.compile(r"errorType:'(\w+)'")


class Difference(NamedTuple):
    """One step whose response is another one; `members` are those that no entry of the ledger allows."""

    conversation: str
    number: int
    step: Step
    members: frozenset[str]
    theirs: Response
    ours: Response

    @property
    def shown(self) -> str:
        """For a failing test."""
        lines = (
            f"{self.conversation} {self.number}: {', '.join(sorted(self.members))}",
            f"  {self.step.shown[:SHOWN_MAX]}",
            f"  theirs {self.theirs.line[:SHOWN_MAX]}",
            f"  ours   {self.ours.line[:SHOWN_MAX]}",
        )
        return "\n".join(lines)


def members(theirs: Response, ours: Response) -> frozenset[str]:
    """`status`, `type`, names of members of an object, and `body` where a side has another value.

    `reasons` are the kinds of what is incompatible, in whatever words they are said.
    """
    found = set()
    if ERROR_TYPE.findall(str(theirs.body)) != ERROR_TYPE.findall(str(ours.body)):
        found.add("reasons")
    if theirs.status != ours.status:
        found.add("status")
    if theirs.kind != ours.kind:
        found.add("type")
    if isinstance(theirs.body, dict) and isinstance(ours.body, dict):
        names = {*theirs.body, *ours.body}
        found |= {name for name in names if theirs.body.get(name, ...) != ours.body.get(name, ...)}
    elif theirs.body != ours.body:
        found.add("body")
    return frozenset(found)


def differences(
    conversations: Iterable[Conversation],
    theirs: Mapping[str, Sequence[Response]],
    ours: Mapping[str, Sequence[Response]],
) -> tuple[list[Difference], set[Allowed]]:
    """Those that nothing allows, and the entries of the ledger that allowed something."""
    found: list[Difference] = []
    used: set[Allowed] = set()
    for one in conversations:
        responses = zip(one.steps, theirs[one.name], ours[one.name], strict=True)
        for number, (step, their, our) in enumerate(responses):
            left = members(their, our)
            for entry in ALLOWED if left else ():
                if entry.covers(one.name, step, their, our) and left & entry.of(left):
                    used.add(entry)
                    left -= entry.of(left)
            if left:
                found.append(Difference(one.name, number, step, left, their, our))
    return found, used
