"""The `fix:` line of every configuration error."""

from __future__ import annotations

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.fix import fix_for
from kpybroker.config.values import ConfigError


@pytest.mark.parametrize(
    ("props", "fix"),
    [
        ({"num.partitions": "x"}, "set num.partitions to a whole number of at least 1 (default: 1), or leave it out"),
        ({"compression.lz4.level": "99"}, "set compression.lz4.level to a whole number from 1 to 17"),
        ({"compression.gzip.level": "99"}, "to a whole number from 1 to 9, or -1"),
        ({"delete.topic.enable": "x"}, "set delete.topic.enable to true or false (default: true)"),
        ({"compression.type": "x"}, "to one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ({"log.cleanup.policy": "x"}, "to a list of compact, delete"),
        ({"inter.broker.protocol.version": "9"}, "to a Kafka version such as 3.9"),
        ({"log.cleaner.io.buffer.load.factor": "x"}, "to a number (default: 0.9)"),
        ({"broker.id": "x"}, "to a whole number up to 2147483647"),
        ({"kafka.graphite.metrics.exclude.regex": "(kafka"}, "to a regular expression that Python's re takes"),
        ({"kafka.graphite.metrics.exclude.regex": r"\p{Alpha}"}, "without Java's"),
        ({"kafka.graphite.metrics.exclude.regex": "[a-z&&[def]]"}, "to a regular expression"),
        ({"listeners": "x"}, "write listeners as NAME://host:port, e.g. listeners=PLAINTEXT://127.0.0.1:9092"),
        (
            {"listeners": "SSL://:9093"},
            "set inter.broker.listener.name to the listener that brokers use among themselves",
        ),
        ({"kpybroker.new.cluster.id": "a b"}, "set kpybroker.new.cluster.id to 1 to 64 letters, digits, _ and -"),
        ({"log.roll.ms": "0"}, "change log.roll.ms so that the settings agree, or leave it out"),
    ],
)
def test_the_fix_says_which_values_are_accepted(props: dict[str, str], fix: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig(props)
    assert fix in fix_for(caught.value)
