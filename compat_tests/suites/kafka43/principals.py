"""A kpybroker whose plain listeners give principals, as a class of Java does that Kafka's tests load into a broker.

python principals.py BROKER=User:broker,CLIENT=User:client server server.properties
"""

from __future__ import annotations

import sys
from typing import Any
from unittest.mock import patch

from kpybroker.broker.requests.connection import Connection
from kpybroker.cli.main import main as run
from kpybroker.core.authorizer import Principal


def by_listener(text: str) -> dict[str, Principal]:
    """`LISTENER=TYPE:NAME,...`, as the command line has it."""
    found: dict[str, Principal] = {}
    for one in text.split(","):
        listener, _, principal = one.partition("=")
        kind, _, name = principal.partition(":")
        found[listener] = Principal(kind, name)
    return found


def main() -> None:
    principals = by_listener(sys.argv.pop(1))
    begin = Connection.__init__

    def begin_with_principal(self: Connection, *args: Any) -> None:
        begin(self, *args)
        self.principal = principals[self.listener_name]

    with patch.object(Connection, "__init__", begin_with_principal):
        run()


if __name__ == "__main__":
    main()
