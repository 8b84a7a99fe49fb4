"""kafka-consumer-groups and kafka-groups of groups of the new protocol (KIP-848): the same output as on Kafka 4.3.1."""

from __future__ import annotations

from pathlib import Path

from compat_tests.tools.group_outputs import members, outputs, recorded
from tests.support.programs.threaded_broker import threaded_broker


def test_the_tools_print_of_consumer_groups_what_they_print_on_kafka(tmp_path: Path) -> None:
    with threaded_broker(tmp_path) as bootstrap, members(bootstrap):
        found = outputs(bootstrap)
    expected = recorded()
    assert found.keys() == expected.keys()
    assert {command: text for command, text in found.items() if text != expected[command]} == {}
