"""Requests that wait for the share coordinator: each gets one reply, from there or because this coordinator moves."""

from __future__ import annotations

from typing import Any

from kpybroker.core.machine import Step, Ticket


class Waiting:
    """At most one entry for each request in progress."""

    __slots__ = ("_refusals",)

    def __init__(self) -> None:
        self._refusals: dict[Ticket, object] = {}

    def begin(self, ticket: Ticket, refusal: object) -> None:
        """A request waits from now on; `refusal` is its response if the coordinator moves."""
        self._refusals[ticket] = refusal

    def end(self, step: Step[Any], ticket: Ticket, result: object) -> None:
        """Its response, unless it was refused."""
        if self._refusals.pop(ticket, None) is not None:
            step.reply(ticket, result)

    def refuse_all(self, step: Step[Any]) -> None:
        """The coordinator moves."""
        refusals, self._refusals = self._refusals, {}
        for ticket, refusal in refusals.items():
            step.reply(ticket, refusal)
