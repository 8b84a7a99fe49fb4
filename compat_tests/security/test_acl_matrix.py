"""Every API, asked by callers with every operation allowed, denied and not granted: real Kafka 3.9.1 and kpybroker
answer the same errors about the same names, and audit the same denials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.security.acl_callers import CALLERS, allow_admin
from compat_tests.security.acl_differences import is_listed
from compat_tests.security.acl_matrix import Side
from compat_tests.security.acl_requests import Request, all_requests
from compat_tests.support.services import Broker, ZooKeeper
from kpybroker.broker.requests.served import SERVED
from kpybroker.wire.api import ApiKey

AUTHORIZED = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:root",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "3600000",
}
CELLS_MIN = 600
NOT_IN_KAFKA = {ApiKey.DESCRIBE_TOPIC_PARTITIONS, ApiKey.SHARE_GROUP_HEARTBEAT}
"""APIs that Kafka 3.9 does not serve in ZooKeeper mode."""
NOT_AUTHORIZED = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
"""APIs that ask nothing."""

REQUESTS = all_requests()


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Kafka and kpybroker, on two parts of one ZooKeeper."""
    directory = tmp_path_factory.mktemp("acl-matrix")
    zookeeper = ZooKeeper(directory / "zookeeper")
    brokers = []
    try:
        zookeeper.start()
        for kind in ("kafka", "kpybroker"):
            allow_admin(f"{zookeeper.connect}/{kind}")
            broker = Broker(kind, directory / kind, f"{zookeeper.connect}/{kind}", AUTHORIZED)
            brokers.append(broker)
            broker.service.start(lambda output: "started" in output)
        kafka, ours = (Side(broker) for broker in brokers)
        yield kafka, ours
    finally:
        for broker in brokers:
            broker.service.kill()
        zookeeper.stop()


def test_there_are_enough_cells_and_no_api_is_left_out() -> None:
    assert len(REQUESTS) * len(CALLERS) >= CELLS_MIN
    assert {request.api for request in REQUESTS} == SERVED.keys() - NOT_AUTHORIZED - NOT_IN_KAFKA


@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_both_brokers_answer_and_audit_the_same(sides: tuple[Side, Side], request_: Request) -> None:
    kafka, ours = sides
    before = kafka.audit(), ours.audit()
    expected, found = kafka.answers(request_), ours.answers(request_)
    different = {
        caller: (expected[caller], found[caller])
        for caller in expected
        if expected[caller] != found[caller] and not is_listed(request_, expected[caller], found[caller])
    }
    assert not different, _report(different)
    denied = [_counted(side.audit() - earlier) for side, earlier in zip(sides, before, strict=True)]
    assert denied[0] == denied[1]


def _counted(lines: Counter[str]) -> dict[str, int]:
    return dict(sorted(lines.items()))


def _report(different: dict[str, Any]) -> str:
    shown = [f"{caller}:\n  kafka {kafka}\n  ours  {ours}" for caller, (kafka, ours) in different.items()]
    return "\n".join([f"{len(different)} cells differ", *shown[:6]])
