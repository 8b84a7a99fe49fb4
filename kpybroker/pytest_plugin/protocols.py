"""A suite in the classic group protocol, in that of KIP-848, or in both: `--kafka-group-protocol`.

Each test that takes a broker is there once for each protocol. While it runs, that is the protocol of every consumer
that it makes without naming one, whichever broker makes it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Final

import pytest

from kpybroker.pytest_plugin import marker
from kpybroker.pytest_plugin.options import PROTOCOLS, group_protocols

if TYPE_CHECKING:
    from kpybroker.testing.clients import GroupProtocol

FIXTURE: Final = "kafka_group_protocol"
TAKES_A_BROKER: Final = frozenset(("kafka_broker", "kafka_cluster", "kafka_broker_factory", FIXTURE))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Once with each protocol that was chosen, or the only one that the test's marker names."""
    if TAKES_A_BROKER.isdisjoint(metafunc.fixturenames):
        return
    only = marker.given(metafunc.definition).get("group_protocol")
    if only not in PROTOCOLS:
        only = None  # the setup of the test refuses it, if it is there
    chosen = group_protocols(metafunc.config) or (() if only is None else (only,))
    if chosen:
        if FIXTURE not in metafunc.fixturenames:
            metafunc.fixturenames.append(FIXTURE)
        metafunc.parametrize(FIXTURE, [one for one in chosen if only in (None, one)], indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let consumers have the protocol of this test."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    protocol: GroupProtocol | None = params.get(FIXTURE)
    if protocol is None:
        return (yield)
    from kpybroker.testing import clients

    before, clients.suite_protocol = clients.suite_protocol, protocol
    try:
        return (yield)
    finally:
        clients.suite_protocol = before


@pytest.fixture
def kafka_group_protocol(request: pytest.FixtureRequest) -> GroupProtocol:
    """The group protocol of this test's consumers: that of `--kafka-group-protocol`, by default "classic"."""
    protocol: GroupProtocol = getattr(request, "param", "classic")
    return protocol
