"""Sessions of ZooKeeper that end when a test wants it, and not when the machine stands still for a moment.

A killed broker's session lives on for as long as its time-out says. A test that does not measure this has no reason to
wait for it, and none to make the time-out so short that a busy machine ends sessions too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

CONNECT_S = 120.0
SECRET = 0xB3415C00


def end_session(zookeeper: str, path: str, connect_s: float = CONNECT_S) -> None:
    """End the session that has made the ephemeral node at `path`, by taking it over and closing it.

    `zookeeper` is host:port/chroot. If there is no such node, nothing is done. Its former client takes it back as soon
    as it has lost it, sometimes before it is closed: then it is taken over again. Raises KazooTimeoutError.
    """
    with _client(zookeeper, connect_s) as client:
        owner = _owner(client, path)
        while owner is not None and _owner(client, path) == owner:
            with _client(zookeeper, connect_s, (owner, session_password(owner))):
                pass


def _owner(client: KazooClient, path: str) -> int | None:
    """The session that has made the node; None: there is no node."""
    try:
        _, stat = client.get(path)
    except NoNodeError:
        return None
    owner: int = stat.ephemeralOwner
    return owner


@contextmanager
def _client(zookeeper: str, connect_s: float, session: tuple[int, bytes] | None = None) -> Iterator[KazooClient]:
    """Leaving ends the session."""
    client = KazooClient(zookeeper, client_id=session)
    try:
        client.start(timeout=connect_s)
        yield client
    finally:
        client.stop()
        client.close()


def session_password(session_id: int) -> bytes:
    """As ZooKeeperServer.generatePasswd makes it: sixteen bytes of a java.util.Random seeded with the id."""
    seed = ((session_id ^ SECRET) ^ 0x5DEECE66D) & (2**48 - 1)
    password = b""
    while len(password) < 16:
        seed = (seed * 0x5DEECE66D + 0xB) & (2**48 - 1)
        password += (seed >> 16).to_bytes(4, "little")
    return password
