"""Share and streams groups of a cluster that responds late: a page asks over the connections that it has, and says what
did not respond in place of "there is no group".
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import WireCluster
from kpybroker.client.direct.cluster import DirectCluster
from kpybroker.console.queries import groups
from kpybroker.console.web.live import CLIENT_ID
from kpybroker.testing import Broker
from tests.console.conftest import START_S, MakeClient, settings_for
from tests.console.test_share_groups import worked
from tests.console.test_slow import assert_is_late, held
from tests.support.requests.streams_application import SETTLE_S, Application
from tests.support.requests.streams_group_requests import counting

SHARED, STREAMED = "slow-shared", "slow-streamed"
PATHS = (
    f"/group?id={SHARED}",
    f"/group?id={STREAMED}",
    f"/change/group-move?group={SHARED}&to=start&preview=1",
    f"/group/lag.json?id={SHARED}",
    f"/group/lag.json?id={STREAMED}",
    "/groups?q=slow-&lag=1",
)


@pytest.fixture(scope="module", autouse=True)
def slow_groups(broker: Broker) -> Iterator[None]:
    """A share group whose member has gone, and a streams group with one member."""
    for name in (SHARED, STREAMED):
        broker.create_topic(name, partitions=1)
        broker.produce(name, ["a"] * 3)
    worked(broker, SHARED)
    with WireCluster(Settings(broker.bootstrap_servers, {}, SETTLE_S, "the test")) as cluster:
        application = Application(cluster, STREAMED)
        application.join(counting(STREAMED))
        application.commit(1)
        yield


@pytest.mark.parametrize("path", PATHS)
def test_a_page_asks_for_metadata_twice_at_most(client: MakeClient, broker: Broker, path: str) -> None:
    browser = client()
    broker.clear_requests()
    assert browser.get(path).status_code == 200
    made = [one.api for one in broker.requests(client_id=CLIENT_ID)]
    assert made.count("Metadata") <= 2, made
    assert made.count("ApiVersions") <= 2, "connections: one to find the broker, and the broker's own"
    broker.clear_requests()
    assert browser.get(path).status_code == 200
    again = [one.api for one in broker.requests(client_id=CLIENT_ID)]
    assert again.count("Metadata") <= 2, again
    assert "ApiVersions" not in again


@pytest.mark.parametrize(
    ("path", "api"),
    [
        *((path, "Metadata") for path in PATHS[:3]),
        *((path, "FindCoordinator") for path in PATHS[:3]),
        (PATHS[0], "ShareGroupDescribe"),
        (PATHS[0], "DescribeShareGroupOffsets"),
        (PATHS[1], "StreamsGroupDescribe"),
        (PATHS[2], "ShareGroupDescribe"),
    ],
)
def test_a_group_is_missing_only_where_the_cluster_said_so(broker: Broker, path: str, api: str) -> None:
    assert_is_late(broker, path, api)


@pytest.mark.parametrize("name", [SHARED, STREAMED])
def test_requests_of_a_page_have_one_deadline(broker: Broker, name: str) -> None:
    settings = settings_for(broker.bootstrap_servers)
    cluster = DirectCluster(settings._replace(properties={"client.id": CLIENT_ID}))
    cluster.deadline.begin(0.2)
    with held(broker, "ShareGroupDescribe"), pytest.raises(CommandError, match=r"the 0\.2 seconds for all requests"):
        groups.described(cluster, name)
    cluster.deadline.begin(START_S)
    assert groups.described(cluster, name)["group"] == name, "what the deadline broke off is not in the way"
    cluster.close()
