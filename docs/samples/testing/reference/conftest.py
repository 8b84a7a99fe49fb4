"""The broker and the cluster of these examples: each test has its own."""

from collections.abc import Iterator

import pytest

from kpybroker.testing import Broker, Cluster


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 3}, partitions=1) as broker:
        yield broker


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, topics={"orders": 3}, partitions=1) as cluster:
        yield cluster
