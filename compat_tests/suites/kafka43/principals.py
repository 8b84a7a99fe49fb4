"""A kpybroker whose plain listeners give principals, as a class of Java does that Kafka's tests load into a broker.

python principals.py BROKER=User:broker,CLIENT=User:client server server.properties
"""

from __future__ import annotations

import sys
from unittest.mock import patch

from kpybroker.broker.requests import connection
from kpybroker.broker.requests.connection import Connection
from kpybroker.cli.main import main as run
from kpybroker.core.authorizer import Principal


def by_listener(text: str) -> dict[str, Principal]:
    """`LISTENER=TYPE:NAME,...`, as the command line has it."""
    pairs = (one.split("=") for one in text.split(","))
    return {listener: Principal(*principal.split(":")) for listener, principal in pairs}


def main() -> None:
    principals = by_listener(sys.argv.pop(1))
    begin = Connection.__init__

    def begin_with_principal(
        self: Connection, stream: connection.Stream, bound: connection.BoundListener, n: int
    ) -> None:
        begin(self, stream, bound, n)
        self.principal = principals[bound.name]

    with patch.object(Connection, "__init__", begin_with_principal):
        run()


if __name__ == "__main__":
    main()
