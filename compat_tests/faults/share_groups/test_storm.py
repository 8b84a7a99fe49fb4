"""Share groups while brokers are killed; `make soak-share` kills more of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.faults.share_groups.storm import run
from compat_tests.support.groups.serving import has_features


@pytest.mark.wide
@pytest.mark.parametrize("brokers", [1, 3])
def test_every_record_is_accepted_once_or_given_up_by_the_rules(
    request: pytest.FixtureRequest, tmp_path: Path, seed: int, brokers: int
) -> None:
    if not has_features(request.config.option.broker):
        pytest.skip("Kafka 3.9 has no share groups, nor has a broker in its place")
    assert run(tmp_path, seed, 2, brokers) == []


@pytest.mark.wide
def test_members_of_four_clients_are_one_group_while_brokers_of_three_are_killed(
    request: pytest.FixtureRequest, tmp_path: Path, seed: int
) -> None:
    """Our own, Java 4.3.1's VerifiableShareConsumer, franz-go, and confluent-kafka: each is given records."""
    if not has_features(request.config.option.broker):
        pytest.skip("Kafka 3.9 has no share groups, nor has a broker in its place")
    assert run(tmp_path, seed, 3, 3, is_mixed=True) == []
