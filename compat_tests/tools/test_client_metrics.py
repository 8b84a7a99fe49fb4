"""`kafka-client-metrics` and `kafka-configs --entity-type client-metrics`, with the words of Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.support.command_line import CommandLine
from compat_tests.support.tools import VERSIONS, Result, Tools
from kpybroker.testing import Broker as OwnBroker

PREFIXES = "org.apache.kafka.producer.,org.apache.kafka.consumer."
MATCH = "client_id=app-.*,client_software_name=librdkafka"
OF_TYPE = ("--entity-type", "client-metrics")
OF_T = (*OF_TYPE, "--entity-name", "t")
TOO_SHORT = "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)"
FAILED = "Error while executing client metrics command : "


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with OwnBroker(in_thread=True) as broker:
        yield broker.bootstrap_servers


def run(bootstrap: str, tool: str, *words: str, version: str = "4.x") -> Result:
    return Tools(version, bootstrap).run(tool, *words, check=False)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_subscription_is_made_listed_described_and_deleted(bootstrap: str, version: str) -> None:
    def said(*words: str) -> tuple[int, list[str]]:
        result = run(bootstrap, "client-metrics", *words, version=version)
        return result.code, result.lines

    altered = (0, ["Altered client metrics config for s."])
    title = "Client metrics configs for s are:"
    assert said("--list") == (0, [])
    assert said("--describe") == (0, [])
    options = ("--metrics", PREFIXES, "--interval", "5000", "--match", MATCH)
    assert said("--alter", "--name", "s", *options) == altered
    assert said("--list") == (0, ["s"])
    shown = (0, [title, "  interval.ms=5000", f"  match={MATCH}", f"  metrics={PREFIXES}"])
    assert said("--describe", "--name", "s") == shown
    assert said("--describe") == shown
    assert said("--alter", "--name", "s", "--interval", "") == altered
    assert said("--describe", "--name", "s")[1][1] == "  interval.ms=300000"
    for option, value, text in (
        ("--interval", "1", TOO_SHORT),
        ("--match", "nope=1", "Illegal client matching pattern: nope=1"),
    ):
        assert said("--alter", "--name", "s", option, value) == (1, [FAILED + text])
    for _ in range(2):
        assert said("--delete", "--name", "s") == (0, ["Deleted client metrics config for s."])
    assert said("--list") == (0, [])


def test_one_that_is_not_there_in_the_words_of_4(bootstrap: str) -> None:
    nothing = "The client metric resource s doesn't exist and doesn't have dynamic config."
    assert run(bootstrap, "client-metrics", "--describe", "--name", "s").lines == [nothing]
    assert run(bootstrap, "configs", "--describe", *OF_T).lines == [
        "The client-metric 't' doesn't exist and doesn't have dynamic config."
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_kafka_configs_knows_them_as_a_type(bootstrap: str, version: str) -> None:
    def said(*words: str) -> tuple[int, list[str]]:
        result = run(bootstrap, "configs", *words, version=version)
        return result.code, result.lines

    done = (0, ["Completed updating config for client-metric t."])
    assert said("--alter", *OF_T, "--add-config", "metrics=[a,b],interval.ms=1000") == done
    lines = [
        f"  {pair} sensitive=false synonyms={{DYNAMIC_CLIENT_METRICS_CONFIG:{pair}}}"
        for pair in ("interval.ms=1000", "metrics=a,b")
    ]
    for words in (OF_TYPE, OF_T):
        assert said("--describe", *words) == (0, ["Dynamic configs for client-metric t are:", *lines])
    assert said("--describe", "--all", *OF_T) == (
        0,
        ["All configs for client-metric t are:", lines[0], "  match= sensitive=false synonyms={}", lines[1]],
    )
    refused = run(bootstrap, "configs", "--alter", *OF_T, "--add-config", "nope=1", version=version)
    assert refused.code == 1
    assert "InvalidRequestException: Unknown client metrics configuration: nope" in refused.err
    assert said("--alter", *OF_T, "--delete-config", "metrics,interval.ms") == done
    assert said("--describe", *OF_TYPE) == (0, [])


def test_our_command_and_kafkas_see_the_same(bootstrap: str) -> None:
    cli = CommandLine(bootstrap)
    cli.run("config", "set", "client-metrics", "s", "metrics=*")
    assert run(bootstrap, "client-metrics", "--list").lines == ["s"]
    assert run(bootstrap, "client-metrics", "--alter", "--name", "s", "--interval", "1000").code == 0
    rows = cli.json("config", "list", "client-metrics")
    assert {row["key"]: row["value"] for row in rows} == {"metrics": "*", "interval.ms": "1000"}
    cli.run("config", "unset", "client-metrics", "s", "metrics", "interval.ms")
    assert run(bootstrap, "client-metrics", "--list").lines == []
