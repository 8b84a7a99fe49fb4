"""The requests, generated: over all routes, states of a subject, members, headers and parameters."""

from __future__ import annotations

from typing import Final

from compat_tests.registry.differential.conversations import (
    bodies,
    contexts,
    headers,
    parameters,
    references,
    settings,
    states,
    texts,
    walks,
)
from compat_tests.registry.differential.step import Conversation

ALL: Final[tuple[Conversation, ...]] = (
    *states.CONVERSATIONS,
    *bodies.CONVERSATIONS,
    *headers.CONVERSATIONS,
    *parameters.CONVERSATIONS,
    *settings.CONVERSATIONS,
    *references.CONVERSATIONS,
    *contexts.CONVERSATIONS,
    *texts.CONVERSATIONS,
    *walks.CONVERSATIONS,
)
