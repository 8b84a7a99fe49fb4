"""A connection takes the turns of its client: of its address, and of its principal once it has logged in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from kpybroker.broker.network.transport import Listener, Stream
from kpybroker.broker.requests.connection import BoundListener, Connection
from kpybroker.core.authorizer import ANONYMOUS, Principal


class Recorded:
    """A stream that notes whose turns it takes."""

    local_address, remote_address = ("127.0.0.1", 9092), ("10.0.0.7", 50_000)

    def __init__(self) -> None:
        self.clients: list[object] = []

    def belongs_to(self, client: object) -> None:
        self.clients.append(client)


def test_turns_are_of_an_address_until_the_login_and_of_the_principal_after_it() -> None:
    stream = Recorded()
    bound = BoundListener("SASL", "SASL_PLAINTEXT", cast(Listener, None))
    connection = Connection(cast(Stream, stream), bound, 0)
    connection.serving = cast(Any, SimpleNamespace(frames=SimpleNamespace(allow=lambda _: None)))
    assert (connection.principal, connection.turns_of, stream.clients) == (ANONYMOUS, "10.0.0.7", [])
    alice = Principal("User", "alice")
    connection.admit(alice, cast(Any, None))
    assert (connection.turns_of, stream.clients) == (alice, [alice])
