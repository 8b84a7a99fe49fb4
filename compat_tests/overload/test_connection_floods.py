"""Connections that only take place: many that never say anything whole, and one address that opens them without end.

What a client pays in time for such a flood is measured by benches; here it goes on, and the broker holds little.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import time
from collections.abc import Iterator

import pytest

from compat_tests.overload.raw import Raw, frame_of
from compat_tests.overload.victim import Victim
from compat_tests.support.waiting import eventually
from kpybroker.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.metadata import MetadataRequest

HALF_OPEN = 2_000
CONNECTION_BYTES_MAX = 30_000
FLOODER = "127.0.0.2"
RATE = 5
WINDOWS_S = 12
"""Kafka's samples of a rate cover up to so many seconds, so a burst may be this long."""


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Enough for this process's ends of the connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, HALF_OPEN + 1_000)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("descriptors")
@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="silent", marks=pytest.mark.wide),
        pytest.param(b"\0\0", id="size", marks=pytest.mark.wide),
        pytest.param(frame_of(MetadataRequest(), 12)[:-1], id="frame"),
    ],
)
def test_half_open_connections_take_little_and_no_one_waits_for_them(victim: Victim, sent: bytes) -> None:
    victim.is_unharmed()
    victim.reset_peak()
    before, sockets = victim.rss, victim.open_sockets
    with contextlib.ExitStack() as stack:
        for _ in range(HALF_OPEN):
            stack.enter_context(Raw(victim.address)).send(sent)
        eventually(lambda: victim.open_sockets >= sockets + HALF_OPEN, "all are accepted")
        victim.is_unharmed()
        with Raw(victim.address) as newcomer:
            assert newcomer.ask(ApiVersionsRequest(), 0).error_code == 0
        assert victim.peak_rss - before < HALF_OPEN * CONNECTION_BYTES_MAX
    eventually(lambda: victim.open_sockets < sockets + 100, "all have ended")
    victim.is_unharmed()


def limit(victim: Victim, rate: float | None) -> None:
    request = AlterClientQuotasRequest
    entry = request.EntryData(
        entity=[request.EntityData(entity_type="ip", entity_name=FLOODER)],
        ops=[request.OpData(key="connection_creation_rate", value=rate or 0.0, remove=rate is None)],
    )
    with Raw(victim.address) as client:
        (response,) = client.ask(request(entries=[entry]), 1).entries
    assert response.error_code == 0, response


def is_served_from_flooder(victim: Victim) -> bool:
    with socket.create_connection(victim.address, 60, source_address=(FLOODER, 0)) as flood:
        try:
            flood.sendall(frame_of(ApiVersionsRequest(), 0))
            return bool(flood.recv(4))
        except ConnectionError:
            return False


def test_an_address_that_opens_connections_without_end_gets_its_rate(victim: Victim) -> None:
    """Its other connections are closed, and those of other addresses are not."""
    limit(victim, RATE)
    try:
        served = refused = 0
        began = time.monotonic()
        while refused < 20 or served < 2 * RATE:
            if is_served_from_flooder(victim):
                served += 1
            else:
                refused += 1
            with Raw(victim.address) as other:
                assert other.ask(ApiVersionsRequest(), 0).error_code == 0
        assert served <= RATE * (time.monotonic() - began + WINDOWS_S)
        victim.is_unharmed()
    finally:
        limit(victim, None)
    assert all(is_served_from_flooder(victim) for _ in range(100))
