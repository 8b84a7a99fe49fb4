"""Every API, asked by callers with every operation allowed, denied and not granted: real Kafka 3.9.1 and kpybroker
return the same errors about the same names, and audit the same denials.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.security.access.acl_callers import CALLERS
from compat_tests.security.access.acl_matrix import Side, differences, running_sides
from compat_tests.security.access.acl_requests import Request, all_requests
from kpybroker.broker.requests.served.apis import NEEDS_SHARE_VERSION, NEEDS_STREAMS_VERSION, SERVED
from kpybroker.wire.api import ApiKey

CELLS_MIN = 600
NOT_IN_KAFKA = {
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    *NEEDS_SHARE_VERSION,
    *NEEDS_STREAMS_VERSION,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.LIST_CONFIG_RESOURCES,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}
"""APIs that Kafka 3.9 does not serve in ZooKeeper mode."""
NOT_AUTHORIZED = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
"""APIs that ask nothing."""

REQUESTS = all_requests()


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    with running_sides(tmp_path_factory.mktemp("acl-matrix"), {"super.users": "User:root"}) as both:
        yield both


def test_there_are_enough_cells_and_no_api_is_left_out() -> None:
    assert len(REQUESTS) * len(CALLERS) >= CELLS_MIN
    assert {request.api for request in REQUESTS} == SERVED.keys() - NOT_AUTHORIZED - NOT_IN_KAFKA


OF_MAKE_TEST = REQUESTS[::2]
"""Every other one: a request of each has all callers. The rest is for --all-versions (make compat-secure)."""


@pytest.mark.parametrize(
    "request_",
    [one if one in OF_MAKE_TEST else pytest.param(one, marks=pytest.mark.wide) for one in REQUESTS],
    ids=str,
)
def test_both_brokers_respond_and_audit_the_same(sides: tuple[Side, Side], request_: Request) -> None:
    assert not (report := differences(sides, request_)), report
