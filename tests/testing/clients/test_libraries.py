"""Configuration of client libraries."""

from __future__ import annotations

import pytest

from kpybroker.testing import UsageError
from kpybroker.testing.clients import libraries

SERVERS = "127.0.0.1:1,127.0.0.1:2"


@pytest.mark.parametrize(
    ("library", "extra", "config"),
    [
        (
            "confluent-kafka",
            {"auto_offset_reset": "latest"},
            {"bootstrap.servers": SERVERS, "auto.offset.reset": "latest"},
        ),
        ("confluent-kafka", {"linger.ms": 5}, {"bootstrap.servers": SERVERS, "linger.ms": 5}),
        ("java", {"group_id": "g"}, {"bootstrap.servers": SERVERS, "group.id": "g"}),
        ("kafka-python", {"group_id": "g"}, {"bootstrap_servers": SERVERS, "group_id": "g"}),
        ("aiokafka", {"group_id": "g"}, {"bootstrap_servers": SERVERS, "group_id": "g"}),
        (
            "spark",
            {"subscribe": "t", "startingOffsets": "earliest", "security_protocol": "PLAINTEXT"},
            {
                "kafka.bootstrap.servers": SERVERS,
                "subscribe": "t",
                "startingOffsets": "earliest",
                "kafka.security.protocol": "PLAINTEXT",
            },
        ),
    ],
)
def test_each_library_gets_its_own_spelling(library: str, extra: dict[str, object], config: dict[str, object]) -> None:
    assert libraries.config(library, SERVERS, extra) == config


def test_a_library_that_is_not_known_is_named_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="'librdkafka' is no client library") as caught:
        libraries.config("librdkafka", SERVERS, {})
    assert caught.value.fix.startswith("use one of confluent-kafka, kafka-python")
    with pytest.raises(UsageError, match="'aiokafka' is no client library"):
        libraries.chosen("aiokafka")


def test_only_confluent_kafka_has_the_consumer_group_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    assert libraries.of_protocol("confluent-kafka", None) == libraries.of_protocol("kafka-python", None) == {}
    assert libraries.of_protocol("confluent-kafka", "consumer") == {"group.protocol": "consumer"}
    assert libraries.of_protocol("confluent-kafka", "classic") == {"group.protocol": "classic"}
    assert libraries.of_protocol("kafka-python", "classic") == {}
    with pytest.raises(UsageError, match="kafka-python has only the classic group protocol"):
        libraries.of_protocol("kafka-python", "consumer")
    monkeypatch.setattr(libraries, "suite_protocol", "consumer")
    assert libraries.of_protocol("confluent-kafka", None) == {"group.protocol": "consumer"}
    assert libraries.of_protocol("confluent-kafka", "classic") == {"group.protocol": "classic"}


def test_the_first_library_that_is_installed_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: set[str] = {"confluent_kafka", "kafka"}
    monkeypatch.setattr(libraries.importlib.util, "find_spec", lambda name: name if name in installed else None)  # type: ignore[attr-defined]
    assert libraries.chosen(None) == "confluent-kafka"
    installed.discard("confluent_kafka")
    assert libraries.chosen(None) == "kafka-python"
    assert libraries.chosen("confluent-kafka") == "confluent-kafka"
    installed.clear()
    with pytest.raises(UsageError, match="no client library is installed"):
        libraries.chosen(None)
    with pytest.raises(UsageError, match="aiokafka is not installed"):
        libraries.aio_producer(SERVERS, {})
