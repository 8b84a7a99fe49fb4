"""Ours next to Confluent's registry: the same requests, over all routes and states, responses compared by member.

Theirs are recorded. With `KPYBROKER_TEST_REGISTRY_REFERENCE`, a command that starts it with a bootstrap address and a
port as arguments, the recording is compared with what it says now.
"""

from __future__ import annotations

import pytest

from compat_tests.registry.conftest import MakeReference, MakeRegistry
from compat_tests.registry.differential.allowed import ALLOWED
from compat_tests.registry.differential.compare import differences, members
from compat_tests.registry.differential.conversations import ALL
from compat_tests.registry.differential.recording import played, recorded

REQUESTS_MIN = 3_000
SHOWN_MAX = 30
SOME = 4
"""One in so many conversations is played in `make test`."""


def test_requests_are_many_and_names_differ() -> None:
    assert sum(len(one.steps) for one in ALL) >= REQUESTS_MIN
    assert len({one.name for one in ALL}) == len(ALL)


def test_responses_of_some_are_as_recorded(start: MakeRegistry) -> None:
    some = ALL[::SOME]
    found, _ = differences(some, recorded(), played(start().url, some))
    assert not found, f"{len(found)} differences\n" + "\n".join(one.shown for one in found[:SHOWN_MAX])


@pytest.mark.wide
def test_responses_are_as_recorded(start: MakeRegistry) -> None:
    found, used = differences(ALL, recorded(), played(start().url))
    assert not found, f"{len(found)} differences\n" + "\n".join(one.shown for one in found[:SHOWN_MAX])
    unused = [entry.reason for entry in ALLOWED if entry not in used]
    assert not unused, f"nothing differs any more in what these allow: {unused}"


def test_the_reference_says_what_is_recorded(reference: MakeReference) -> None:
    theirs, now = recorded(), played(reference().url)
    other = [
        f"{one.name}: {step.shown[:200]}"
        for one in ALL
        for step, then, again in zip(one.steps, theirs[one.name], now[one.name], strict=True)
        if members(then, again) - {"scope"}
    ]
    assert not other
