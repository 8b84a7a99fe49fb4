"""How log lines name a client, and which of them are written once for each client.

Every line about a client names its connection, and its client id and software where they are known. What a client
sends is shortened, and escaped where it is not plain, so that it cannot write lines of its own.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kpybroker.broker.requests.context import ConnectionInfo

SHOWN_CHARACTERS_MAX = 100
REMEMBERED_MAX = 1000


def client_name(client: ConnectionInfo) -> str:
    """`127.0.0.1:9092-127.0.0.1:50124-7 client_id=orders software=apache-kafka-java-3.9.1`."""
    from kpybroker.wire.constants import UNKNOWN_SOFTWARE  # the command line imports this module, not the wire

    name = client.connection_id
    if client.client_id is not None:
        name += f" client_id={shown(client.client_id)}"
    if client.client_software_name != UNKNOWN_SOFTWARE:
        software = f"{client.client_software_name}-{client.client_software_version}"
        name += f" software={shown(software)}"
    return name


def shown(text: str) -> str:
    """What a client sent, for a log line: short, on one line, and without doubt where it ends."""
    if len(text) > SHOWN_CHARACTERS_MAX:
        text = text[:SHOWN_CHARACTERS_MAX] + "..."
    is_plain = text.isascii() and text.isprintable() and text and not any(character in text for character in " \"'\\=")
    return text if is_plain else ascii(text)


class FirstTimes:
    """Which lines have been written about which clients. A client is its host, client id and software.

    At most `REMEMBERED_MAX` are remembered, by their hashes, for a client's names may be long; about the oldest a line
    may be written again.
    """

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[int, None] = {}

    def is_first(self, client: ConnectionInfo, *subject: Hashable) -> bool:
        """Whether this is the first call for this client and subject."""
        software = (client.client_software_name, client.client_software_version)
        key = hash((client.client_host, client.client_id, software, subject))
        if key in self._seen:
            return False
        if len(self._seen) >= REMEMBERED_MAX:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = None
        return True
