"""Which Kafka Connect and which connector a change is of, and the pages that show it."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.console.changes.change import Ask, Command, Field, InField, Values
from kpybroker.console.queries.connect.rest import NOT_FOUND, Asking

CONNECT: Final = Field("connect", "Kafka Connect", hint="Its name; empty where there is one.")
NAME: Final = Field("name", "Connector", is_required=True)
OF_CONNECTOR: Final = {NOT_FOUND: "name"}
NEEDS: Final = "of Kafka Connect: a login that may change connectors, where it asks for one"


def asking(ask: Ask) -> Asking:
    """The Kafka Connect that a form names. Raises CommandError."""
    name = ask.values["connect"]
    if not ask.connects:
        raise CommandError("this console knows no Kafka Connect", "start it with --connect URL")
    if not name and len(ask.connects) == 1:
        (found,) = ask.connects.values()
        return found.asking()
    if name not in ask.connects:
        raise InField(
            "connect", usage(f"there is no Kafka Connect {name[:100]!r}", f"one of {', '.join(ask.connects)}")
        )
    return ask.connects[name].asking()


def page(values: Values) -> str:
    """The page of the connector."""
    return f"/connector?connect={quote(values['connect'], safe='')}&name={quote(values['name'], safe='')}"


def no_command(_: Values) -> Command:
    """kpybroker has no command for Kafka Connect: see `calls`."""
    return [], []
