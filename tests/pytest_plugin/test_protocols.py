"""A suite in one group protocol or in both."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.programs.pytest_runs import run_pytest

SUITE = """
import pytest
from kpybroker.testing import Broker

def test_consumers_have_the_protocol(kafka_broker, kafka_topic, kafka_consumer, group_id, kafka_group_protocol):
    kafka_broker.produce(kafka_topic, ["a"])
    assert kafka_consumer.poll(120).value() == b"a"
    assert kafka_broker.wait_group(group_id, members=1).type == kafka_group_protocol

def test_a_consumer_that_the_test_makes_has_it_too(request, kafka_broker, kafka_topic, group_id):
    consumer = kafka_broker.consumer(group_id, kafka_topic)
    kafka_broker.produce(kafka_topic, ["a"])
    assert consumer.poll(120).value() == b"a"
    wanted = request.node.callspec.params["kafka_group_protocol"]
    assert kafka_broker.wait_group(group_id, members=1).type == wanted
    consumer.close()

@pytest.mark.kafka(group_protocol="classic")
def test_for_one_protocol(kafka_broker, kafka_group_protocol):
    assert kafka_group_protocol == "classic"

def test_without_a_broker():
    pass
"""

WITHOUT = """
import pytest
from kpybroker.testing.clients import libraries

@pytest.mark.kafka(group_protocol="consumer")
def test_for_the_new_one(kafka_broker, kafka_topic, kafka_consumer, group_id):
    assert kafka_consumer.poll(0) is None
    assert kafka_broker.wait_group(group_id, members=1).type == "consumer"

def test_by_default_a_library_has_its_own(kafka_broker, kafka_group_protocol):
    assert kafka_group_protocol == "classic"
    assert libraries.suite_protocol is None
"""


def test_both_protocols(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, SUITE, "-v", "--kafka-group-protocol=both")
    assert run.counts == {"passed": 6}, run.output
    assert "test_consumers_have_the_protocol[classic]" in run.output
    assert "test_consumers_have_the_protocol[consumer]" in run.output
    assert "test_for_one_protocol[consumer]" not in run.output


def test_one_protocol_by_the_ini_file(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, SUITE, ini="kafka_group_protocol = consumer\n")
    assert run.counts == {"passed": 3, "skipped": 1}, run.output


def test_without_the_option_only_the_marker_counts(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, WITHOUT)
    assert run.counts == {"passed": 2}, run.output


@pytest.mark.parametrize("name", ["new", "Both"])
def test_a_protocol_that_is_not_known(tmp_path: Path, name: str) -> None:
    run = run_pytest(tmp_path, SUITE, ini=f"kafka_group_protocol = {name}\n")
    assert f"kafka_group_protocol is '{name}': choose classic, consumer, both" in run.output
