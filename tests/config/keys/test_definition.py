"""The tables have every key of Kafka, with valid defaults and modes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kpybroker.config.dynamic import FIXED_AT_START, SECURITY_KEYS, THREAD_KEYS
from kpybroker.config.keys.definition import CLUSTER_WIDE, PER_BROKER, READ_ONLY
from kpybroker.config.keys.own import ROWS as OWN_ROWS
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.releases import ADDED, INTERNAL, TOPIC_ADDED
from kpybroker.config.keys.synonyms import TOPIC_SYNONYMS
from kpybroker.config.keys.topic import TOPIC_ROWS
from tests.config.keys.kafka_keys import defined

KAFKA = json.loads((Path(__file__).parent / "kafka_3_9_1_configs.json").read_text())
"""What DescribeConfigs of Kafka 3.9.1 returns: name, value, type, source, read-only, sensitive, synonyms."""


def test_no_key_of_kafka_is_missing_and_ours_have_a_prefix() -> None:
    ours = {row[0] for row in OWN_ROWS}
    assert all(name.startswith(("kpybroker.", "kafka.graphite.")) for name in ours)
    assert BROKER_KEYS.keys() - INTERNAL - ADDED - ours == {row[0] for row in KAFKA["broker"]}
    assert {row[0] for row in TOPIC_ROWS} - TOPIC_ADDED == {row[0] for row in KAFKA["topic"]}


@pytest.mark.parametrize("name", sorted(BROKER_KEYS))
def test_every_default_is_a_good_value(name: str) -> None:
    BROKER_KEYS[name].parse(BROKER_KEYS[name].default)


def test_dynamic_keys_are_kafkas() -> None:
    dynamic = {row[0] for row in KAFKA["broker"] if not row[4]}
    of_kafka_4 = {name for name, key in defined("4.3.1", "broker").items() if name in ADDED and key.mode != READ_ONLY}
    assert {name for name, key in BROKER_KEYS.items() if key.mode != READ_ONLY} == dynamic | of_kafka_4
    assert {key.mode for key in BROKER_KEYS.values()} == {READ_ONLY, PER_BROKER, CLUSTER_WIDE}


def test_names_used_elsewhere_exist() -> None:
    named = {*INTERNAL, *FIXED_AT_START, *SECURITY_KEYS, *THREAD_KEYS, *TOPIC_SYNONYMS.values()}
    assert named <= BROKER_KEYS.keys()
    assert {synonym for row in TOPIC_ROWS for synonym in row[5]} <= BROKER_KEYS.keys()
