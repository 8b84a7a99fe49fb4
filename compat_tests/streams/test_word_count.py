"""Kafka Streams 4.3.1 with `group.protocol=streams` (KIP-1071): internal topics, tasks, and counts that are right.

With exactly_once_v2 each step of a count is one record, so that what was lost or done twice is seen, whatever happens
to instances and to the broker in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.conftest import StartBroker
from compat_tests.streams.application import CLASSIC, STREAMS
from compat_tests.streams.groups import GROUP, described, set_standbys, streams_broker
from compat_tests.streams.lab import CHANGELOG, PARTITIONS, REPARTITION, Lab
from compat_tests.support import quick
from kpybroker.wire.errors import ErrorCode

SHUT_DOWN = 3


@pytest.fixture
def lab(own_broker: StartBroker, tmp_path: Path) -> Iterator[Lab]:
    broker = streams_broker(own_broker, transaction_state_log_num_partitions="4", offsets_topic_num_partitions="4")
    lab = Lab(broker, tmp_path)
    yield lab
    lab.end()


def test_words_are_counted(lab: Lab) -> None:
    """The coordinator makes the internal topics; a closed instance leaves the group, and gives its tasks back."""
    instance = lab.start()
    lab.write()
    lab.has_counted()
    lab.is_shared(1)
    topics = quick.admin_client(lab.broker.bootstrap).list_topics(timeout=quick.DEADLINE_S).topics
    made = {name: len(topics[name].partitions) for name in topics if name.startswith(GROUP)}
    assert made == {REPARTITION: PARTITIONS, CHANGELOG: PARTITIONS}
    group = described(lab.broker, GROUP)
    assert [one.subtopology_id for one in group.topology.subtopologies] == ["0", "1"]
    instance.close()
    lab.is_empty()


@pytest.mark.wide
def test_instances_share_the_tasks_and_are_restarted_one_by_one(lab: Lab) -> None:
    first = lab.start()
    lab.write()
    lab.is_shared(1)
    second = lab.start()
    lab.is_shared(2)
    lab.write()
    third = lab.start()
    lab.is_shared(3)
    for instance in (first, second, third):
        instance.close()
        lab.write()
        lab.is_shared(2)
        instance.start()
        lab.write()
        lab.is_shared(3)
    lab.has_counted()


@pytest.mark.wide
def test_standbys_take_over_from_an_instance_that_is_killed(lab: Lab) -> None:
    """The broker decides how many there are: it is a setting of the group."""
    set_standbys(lab.broker, 1)
    instances = [lab.start() for _ in range(3)]
    lab.write()
    lab.is_shared(3, standby=1)
    instances[0].kill()
    lab.write()
    lab.is_shared(2, standby=1)
    lab.has_counted()
    instances[0].start()
    lab.is_shared(3, standby=1)
    lab.write()
    lab.has_counted()


@pytest.mark.wide
def test_counts_are_right_after_the_broker_was_killed(lab: Lab) -> None:
    lab.start()
    lab.start()
    lab.write()
    lab.is_shared(2)
    for _ in range(3):
        lab.write()
        lab.broker.kill()
        lab.broker.start()
        lab.write()
    lab.is_shared(2)
    lab.has_counted()


@pytest.mark.wide
def test_an_application_changes_its_protocol_and_goes_back(lab: Lab) -> None:
    """Once it is empty, the group is of the other kind with the first member that joins; its offsets stay."""
    for protocol in (CLASSIC, STREAMS, CLASSIC, STREAMS):
        instance = lab.start(protocol)
        lab.write()
        lab.has_counted()
        found = described(lab.broker, GROUP)
        assert found.error_code == (0 if protocol == STREAMS else ErrorCode.GROUP_ID_NOT_FOUND)
        instance.close()
        lab.is_empty()


@pytest.mark.wide
def test_one_instance_shuts_all_of_them_down(lab: Lab) -> None:
    instances = [lab.start() for _ in range(2)]
    lab.write()
    lab.is_shared(2)
    lab.write(["poison"])
    assert [instance.ends() for instance in instances] == [SHUT_DOWN, SHUT_DOWN], instances[0].said()
