"""The table of `cap_versions` says of each release what its own jar says."""

from __future__ import annotations

import pytest

from compat_tests.deps import jars_dir
from compat_tests.protocol.kafka_releases import versions_in
from kpybroker.broker.requests.served.kafka_releases import versions_of
from kpybroker.wire.api import API_INFO


@pytest.mark.parametrize(
    ("release", "jars"),
    [("0.10.2", "kafka-0.10.2.2"), ("2.8", "kafka-2.8.2"), ("3.9", "kafka-3.9.1"), ("4.3", "kafka-4.3.1")],
)
def test_a_release_serves_what_the_table_says(release: str, jars: str) -> None:
    found = versions_in(next(jars_dir(jars).glob("kafka-clients-*.jar")))
    known = {key: versions for key, versions in found.items() if key in API_INFO}
    assert {int(key): versions for key, versions in versions_of(release).items()} == known
    # From 4.0 on there are APIs that have no spec here yet.
    assert known == found or release.startswith("4")
