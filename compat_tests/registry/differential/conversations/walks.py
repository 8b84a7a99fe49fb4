"""Walks by chance, from fixed seeds: registrations, deletions, settings and reads of two subjects in any order."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, Final

from compat_tests.registry.differential.conversations.schemas import AB, ABC, BROKEN, METADATA, A, body, record
from compat_tests.registry.differential.step import Conversation, Step, conversation

WALKS: Final = 24
LENGTH: Final = 40
SENT: Final[tuple[dict[str, Any], ...]] = (
    body(A),
    body(AB),
    body(ABC),
    body(BROKEN),
    body(record("z")),
    body(A, metadata=METADATA),
    {"metadata": {"properties": {"owner": "eve"}}},
)


def _one(chance: random.Random) -> Step:
    subject = f"NAME-{chance.choice('ab')}"
    version = chance.choice(("1", "2", "3", "latest"))
    permanent = chance.choice(("", "", "?permanent=true"))
    deleted = chance.choice(("", "?deleted=true", "?deletedOnly=true"))
    steps = (
        *[Step("POST", f"/subjects/{subject}/versions", chance.choice(SENT))] * 6,
        *[Step("DELETE", f"/subjects/{subject}/versions/{version}{permanent}")] * 3,
        Step("DELETE", f"/subjects/{subject}{permanent}"),
        Step("POST", f"/subjects/{subject}{deleted}", chance.choice(SENT)),
        Step("GET", f"/subjects/{subject}/versions{deleted}"),
        Step("GET", f"/subjects/{subject}/versions/{version}{deleted}"),
        Step("GET", f"/schemas?subjectPrefix=NAME&{deleted[1:]}"),
        Step("GET", f"/schemas/ids/@{chance.randint(1, 3)}/versions{deleted}"),
        Step("PUT", f"/config/{subject}", {"compatibility": chance.choice(("NONE", "BACKWARD", "FULL_TRANSITIVE"))}),
        Step("DELETE", f"/config/{subject}"),
        Step("PUT", f"/mode/{subject}", {"mode": chance.choice(("READWRITE", "READWRITE", "READONLY", "IMPORT"))}),
        Step("DELETE", f"/mode/{subject}"),
        Step("POST", f"/compatibility/subjects/{subject}/versions/{version}", chance.choice(SENT)),
    )
    return chance.choice(steps)


def _walk(seed: int) -> Iterable[Step]:
    chance = random.Random(seed)
    for _ in range(LENGTH):
        yield _one(chance)


CONVERSATIONS: Final[tuple[Conversation, ...]] = tuple(
    conversation(f"walk{seed}", _walk(seed)) for seed in range(WALKS)
)
