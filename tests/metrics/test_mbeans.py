"""Kafka's object names, and that the tables are in order."""

from __future__ import annotations

from collections import Counter

import pytest

from kpybroker.metrics.mbeans import Kind, quoted
from kpybroker.metrics.spelling import Spelling, spell
from kpybroker.metrics.tables import exporter, log, network, requests, topics
from tests.metrics.families import FAMILIES


def test_object_names_are_kafkas() -> None:
    assert topics.BYTES_IN.object_name(("",)) == "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec"
    assert topics.BYTES_IN.object_name(("t",)) == "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=t"
    assert requests.ERRORS.object_name(("Fetch", "NONE")) == (
        "kafka.network:type=RequestMetrics,name=ErrorsPerSec,request=Fetch,error=NONE"
    )
    assert network.CONNECTION_COUNT.object_name(("PLAINTEXT", "0")) == (
        "kafka.server:type=socket-server-metrics,listener=PLAINTEXT,networkProcessor=0"
    )
    assert log.DIRECTORY_OFFLINE.object_name(("/data",)) == (
        'kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory="/data"'
    )
    assert log.SIZE.object_name() == "kafka.log:type=Log,name=Size,topic=*,partition=*"


@pytest.mark.parametrize(
    ("value", "expected"),
    [("plain-1.0", "plain-1.0"), ("a,b", '"a,b"'), ('a"b', '"a\\"b"'), ("a*", '"a\\*"'), ("a\nb", '"a\\nb"')],
)
def test_values_with_special_characters_are_quoted(value: str, expected: str) -> None:
    assert quoted(value) == expected


@pytest.mark.parametrize("spelling", Spelling)
def test_no_two_families_share_a_name(spelling: Spelling) -> None:
    names = Counter(spell(family, spelling).name for family in FAMILIES)
    assert [name for name, count in names.items() if count > 1] == []


def test_every_family_has_a_meaning_and_a_unit() -> None:
    for family in FAMILIES:
        assert family.meaning.endswith("."), family.object_name()
        assert family.unit, family.object_name()
        assert family.worry == "" or family.worry.endswith("."), family.object_name()


def test_what_is_no_mbean_has_one_name_in_all_spellings() -> None:
    names = {spell(exporter.LAG, spelling) for spelling in Spelling}
    assert len(names) == 1
    assert {family.kind for family in exporter.FAMILIES} == {Kind.GAUGE}
