"""Wrong use of fixtures, marker, options and settings: each is an error of its own test or of the run, with the fix."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kpybroker.pytest_plugin import options
from tests.support.programs.pytest_runs import run_pytest

MARKERS = {
    "kafka(3)": "has an argument without a name: give partitions=, config=, group_protocol=",
    "kafka(partition=3)": "has no argument 'partition': did you mean 'partitions'?",
    "kafka(partitions='3')": "kafka(partitions='3'): give an integer from 1 to 10000",
    "kafka(partitions=0)": "kafka(partitions=0): give an integer from 1",
    "kafka(partitions=True)": "kafka(partitions=True): give an integer from 1",
    "kafka(partitions=None)": "kafka(partitions=None): give an integer from 1",
    "kafka(config='retention.ms=1')": "a mapping of Kafka's keys to values",
    "kafka(config={'retention.ms': None})": "the value of 'retention.ms' is wrong",
    "kafka(config={'retention': 1})": "retention",
    "kafka(config={'retention.ms': 'soon'})": "retention.ms",
    "kafka(group_protocol='new')": "give one of 'classic', 'consumer'",
    "kafka(group_protocol='consumr')": "did you mean 'consumer'?",
    "kafka(group_protocol=['classic'])": "give one of 'classic', 'consumer'",
}
WITHOUT_TOPIC = {
    "kafka(partitions=3)": "kafka(partitions=...) is for kafka_topic, which the test does not take",
    "kafka(config={'retention.ms': 1})": "kafka(config=...) is for kafka_topic, which the test does not take",
}
CALLS = {
    "kafka_broker_factory(3, 4)": "call it as kafka_broker_factory(brokers=1, **options)",
    "kafka_broker_factory('3')": "give an integer from 1 to 9",
    "kafka_broker_factory(0)": "give an integer from 1 to 9",
    "kafka_broker_factory(brokers=10)": "give an integer from 1 to 9",
    "kafka_broker_factory(brokers=2, num_brokers=2)": "give brokers= alone",
    "kafka_broker_factory(topic=['t'])": "did you mean 'topics'?",
    "kafka_broker_factory(topics='orders')": "give a list of names: ['orders']",
    "kafka_broker_factory(config=['x'])": "a mapping of Kafka's keys to values",
    "kafka_broker_factory(config={'num.partition': 1})": "did you mean 'num.partitions'?",
    "kafka_broker_factory(sasl='kerberos')": "give one of 'plain', 'scram', 'oauthbearer'",
    "kafka_requests('Prodcue')": "did you mean `Produce`?",
    "kafka_requests(client='x')": "did you mean 'client_id'?",
    "kafka_faults.error('Produce')": "missing a required argument: 'error'",
    "kafka_faults.blackhole(topics='t')": "did you mean 'topic'?",
    "kafka_clock.advance(25)": "call it as advance(",
    "kafka_clock.advance(hour=25)": "did you mean 'hours'?",
    "kafka_clock.advance()": "would move by nothing",
}


def test_what_is_wrong_in_a_marker_or_a_call_is_an_error_of_its_own_test(tmp_path: Path) -> None:
    tests = ["import pytest\n"]
    for number, marker in enumerate(MARKERS):
        tests.append(f"@pytest.mark.{marker}\ndef test_marker_{number}(kafka_topic, kafka_consumer): ...\n")
    for number, marker in enumerate(WITHOUT_TOPIC):
        tests.append(f"@pytest.mark.{marker}\ndef test_without_topic_{number}(kafka_broker): ...\n")
    for number, call in enumerate(CALLS):
        fixture = re.split(r"\W", call)[0]
        tests.append(f"def test_call_{number}({fixture}):\n    {call}\n")
    tests.append("@pytest.mark.kafka(partitions=3)\nclass TestOf:\n")
    tests.append("    @pytest.mark.kafka(config={'retention.ms': 7})\n")
    tests.append("    def test_both_count(self, kafka_broker, kafka_topic):\n")
    tests.append("        topic = kafka_broker.topics()[kafka_topic]\n")
    tests.append("        assert (len(topic.partitions), topic.config) == (3, {'retention.ms': '7'})\n")
    tests.append("    def test_it_does_not_need_a_topic(self, kafka_broker): ...\n")
    run = run_pytest(tmp_path, "\n".join(tests), "--tb=short")
    assert run.counts == {
        "passed": 2,
        "failed": len(CALLS),
        "errors": len(MARKERS) + len(WITHOUT_TOPIC),
    }, run.output
    reports = dict(re.findall(r"^_+ (?:ERROR at setup of )?(test_\w+) _+\n((?:.*\n)+?)(?=^[_=]{4})", run.output, re.M))
    for kind, table in (("marker", MARKERS), ("without_topic", WITHOUT_TOPIC), ("call", CALLS)):
        for number, (wrong, expected) in enumerate(table.items()):
            assert expected in reports[f"test_{kind}_{number}"], f"{wrong}: {reports[f'test_{kind}_{number}']}"


class Config:
    """Settings and options as pytest's configuration has them."""

    def __init__(self, **given: Any) -> None:
        self._given = given

    def getini(self, name: str) -> Any:
        value = self._given.get(name, [] if name == "kafka_broker_extra_config" else "")
        if isinstance(value, Exception):
            raise value
        return value

    def getoption(self, name: str) -> Any:
        return self._given.get(name.removeprefix("--").replace("-", "_"))


SETTINGS: list[tuple[Callable[[Any], Any], dict[str, Any], str]] = [
    (options.scope, {"kafka_broker_scope": "test"}, "choose session, module, class, function"),
    (options.group_protocols, {"kafka_group_protocol": "new"}, "choose classic, consumer, both"),
    (options.unused_faults, {"kafka_unused_faults": "ignore"}, "choose fail, warn"),
    (options.extra_config, {"kafka_broker_extra_config": ["num.partitions"]}, "'num.partitions' is not `key=value`"),
    (options.extra_config, {"kafka_broker_extra_config": ["=3"]}, "'=3' is not `key=value`"),
    (options.extra_config, {"kafka_broker_extra_config": ["a=1", "b=2", " a = 3"]}, "a is there twice"),
    (options.security, {"kafka_broker_tls": ValueError("invalid truth value 'maybe'")}, "are true or false: invalid"),
]


@pytest.mark.parametrize(("read", "given", "expected"), SETTINGS)
def test_a_setting_that_is_wrong_ends_the_run(read: Callable[[Any], Any], given: dict[str, Any], expected: str) -> None:
    with pytest.raises(pytest.UsageError, match=re.escape(expected)):
        read(Config(**given))


@pytest.mark.parametrize(
    "wrong", ["localhost", "", "localhost:", ":9092", "localhost:x", "h:70000", "h:0", "a:1,", "h:²"]
)
def test_what_is_no_address_ends_the_run(wrong: str) -> None:
    with pytest.raises(pytest.UsageError, match="is not HOST:PORT, such as localhost:9092"):
        options.check_addresses(wrong)
    options.check_addresses("localhost:9092, [::1]:9093,broker.example:1")
