"""One deadline for all requests of a cluster: it shortens each of them, and what is left over is not sent."""

from __future__ import annotations

import pytest

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import Deadline, WireBroker
from kpybroker.wire.api import ApiKey
from tests.support.network.wire_server import kafka_server, versions


def test_without_a_beginning_there_is_none() -> None:
    assert Deadline().within(7.5) == 7.5


def test_a_request_has_what_is_left() -> None:
    deadline = Deadline()
    deadline.begin(60)
    assert 0 < deadline.within(90) <= 60
    assert deadline.within(0.5) == 0.5


def test_nothing_is_sent_when_it_is_over() -> None:
    asked = []

    def api_versions(request: object, version: int) -> object:
        asked.append(version)
        return versions({ApiKey.METADATA: (2, 5)})

    deadline = Deadline()
    with kafka_server({ApiKey.API_VERSIONS: api_versions}) as address:
        settings = Settings(f"{address[0]}:{address[1]}", {}, 60.0, "the test")
        with WireBroker(address, settings, deadline=deadline) as broker:
            broker.handshake()
            deadline.begin(0)
            with pytest.raises(CommandError, match="not asked: the 0 seconds for all requests are over"):
                broker.handshake()
            assert broker.is_broken, "the next page opens another connection"
        with pytest.raises(CommandError, match="not asked"):
            WireBroker(address, settings, deadline=deadline)
    assert len(asked) == 1
