"""The stated effect of every key holds against the code that reads it.

`key_reads` finds the reads. A key stated as honoured is read where a read has an effect; a key stated to be without
effect is read nowhere; a key that may change while the broker runs is read again after the start.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.dynamic import FIXED_AT_START, QUOTA_KEYS
from kpybroker.config.keys.definition import READ_ONLY
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.replication import LEADER_SELECTOR, RACK_AWARE_SELECTOR
from kpybroker.config.keys.status import HONOURED, NO_REVOCATION, REASONS
from kpybroker.config.keys.synonyms import TOPIC_DEFAULT_KEYS
from kpybroker.config.keys.topic import TOPIC_ROWS
from kpybroker.config.topic import LogConfig, field_name
from kpybroker.core.replication.replica_selector import rack_aware, replica_selector
from tests.config.keys.key_reads import Read, key_reads, sources, strings

READ_AT_START = ("broker/lifecycle/", "broker/app.py", "cli/")
"""Code that runs once, before the broker serves."""

TOPIC_KEY_BEHIND = {
    "cleanup.policy": "compact",
    "segment.ms": "max_segment_ms",
    "internal.segment.bytes": "segment_bytes",
    "message.timestamp.difference.max.ms": "message_timestamp_before_max_ms",
}
"""Topic key -> the field or property of `LogConfig` through which its value is read."""


class Found:
    """In the source; `attributes` and `strings` outside `config/`."""

    def __init__(self) -> None:
        self.reads: dict[str, set[Read]] = defaultdict(set)
        self.attributes: set[str] = set()
        self.of_broker_config: set[str] = set()
        self.strings: set[str] = set()
        self.called_after_changes: set[Read] = set()


@cache
def found() -> Found:
    """Not when this module is imported: it takes seconds, and every worker of a run imports it."""
    found, known = Found(), {*BROKER_KEYS, *QUOTA_KEYS}
    for module in sources():
        for key, read in key_reads(module, known):
            found.reads[key].add(read)
        if not module.file.startswith("config/"):
            found.attributes |= module.attributes
            found.strings |= strings(module)
        if module.file == "config/broker.py":
            found.of_broker_config |= module.attributes
        found.called_after_changes |= module.listeners_of_changes
    return found


def stated(status: bool) -> list[str]:
    """The broker keys that are honoured, or those that are not."""
    return sorted(name for name, key in BROKER_KEYS.items() if (key.status == HONOURED) is status)


def test_every_code_has_a_reason_and_is_used() -> None:
    assert {key.status for key in BROKER_KEYS.values()} | {row[6] for row in TOPIC_ROWS} == REASONS.keys()
    assert [code for code, reason in REASONS.items() if not reason] == [HONOURED]


def has_effect(read: Read) -> bool:
    """Whether the value arrives: a property of `BrokerConfig` counts only if other code uses the property."""
    if read.file != "config/broker.py" or read.function.startswith("_"):
        return True
    return read.function in found().attributes | found().of_broker_config


@pytest.mark.parametrize("name", sorted(set(stated(True)) - TOPIC_DEFAULT_KEYS) + sorted(QUOTA_KEYS))
def test_an_honoured_key_is_read(name: str) -> None:
    assert [read for read in found().reads.get(name, ()) if has_effect(read)]


@pytest.mark.parametrize("name", sorted(set(stated(True)) & TOPIC_DEFAULT_KEYS))
def test_an_honoured_default_reaches_its_topic_key(name: str) -> None:
    topic_key, status = next((row[0], row[6]) for row in TOPIC_ROWS if name in row[5])
    assert status == HONOURED
    default = getattr(BrokerConfig().log_defaults, field_name(topic_key))
    for text in ("7", "77", "true", "false", "0.25", "compact", "gzip", "LogAppendTime"):
        try:
            changed = getattr(BrokerConfig({name: text}).log_defaults, field_name(topic_key))
        except ValueError:
            continue
        if changed != default:
            return
    pytest.fail(f"no value of {name} changes {topic_key}")


@pytest.mark.parametrize("name", stated(False))
def test_a_key_without_effect_is_read_nowhere(name: str) -> None:
    reads = found().reads.get(name, set())
    if BROKER_KEYS[name].status == NO_REVOCATION:  # the broker does not start with it, which its reason says
        assert {read.file for read in reads} == {"broker/lifecycle/zookeeper_client.py"}
    else:
        assert reads == set()


@pytest.mark.parametrize("row", TOPIC_ROWS, ids=lambda row: str(row[0]))
def test_a_topic_key_is_read_exactly_when_it_is_honoured(row: tuple[str, ...]) -> None:
    name, status = row[0], row[6]
    used = {field_name(name), TOPIC_KEY_BEHIND.get(name, field_name(name))}
    is_read = bool(used & found().attributes) or bool({name, field_name(name)} & found().strings)
    assert is_read is (status == HONOURED)


def test_a_topic_key_that_is_read_through_another_field_sets_that_field() -> None:
    assert LogConfig.from_props({"cleanup.policy": "compact"}).compact
    assert LogConfig.from_props({"segment.ms": "7"}).max_segment_ms == 7
    assert LogConfig.from_props({"internal.segment.bytes": "7"}).segment_bytes == 7
    assert LogConfig.from_props({"message.timestamp.difference.max.ms": "7"}).message_timestamp_before_max_ms == 7


@pytest.mark.parametrize(
    "name",
    [n for n in stated(True) if BROKER_KEYS[n].mode != READ_ONLY and n not in (*FIXED_AT_START, *TOPIC_DEFAULT_KEYS)],
)
def test_a_key_that_may_change_while_running_is_read_after_the_start(name: str) -> None:
    at_start = ("", "__init__")
    reads = found().reads[name]
    later = {read for read in reads if read.function not in at_start and not read.file.startswith(READ_AT_START)}
    assert later | (reads & found().called_after_changes)


def test_the_replica_selectors_that_the_report_names_are_those_that_work() -> None:
    assert replica_selector(RACK_AWARE_SELECTOR) is rack_aware
    assert replica_selector(LEADER_SELECTOR) is None
