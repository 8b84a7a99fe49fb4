"""Files of offsets: what is written is read back, and a file that is none says where and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.client.records.offset_files import OFFSET_MAX, BadFile, CommittedOffset, dump, parse

ROWS = [CommittedOffset("g", "t", 0, 5, 2, "note"), CommittedOffset("g", "t", 1, 7)]

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1).filter(
    lambda text: text.strip() and text[0] not in "#[{"
)
rows = st.builds(
    CommittedOffset,
    names,
    names,
    st.integers(0, 2**31 - 1),
    st.integers(0, OFFSET_MAX),
    st.none() | st.integers(0, 2**31 - 1),
    st.none() | st.text(),
)


@given(st.lists(rows, unique_by=lambda row: row[:3]))
def test_json_loses_nothing(found: list[CommittedOffset]) -> None:
    assert parse(dump(found, "json")) == found


@given(st.lists(rows, min_size=1, unique_by=lambda row: row[:3]))
def test_csv_keeps_places_and_offsets(found: list[CommittedOffset]) -> None:
    is_one = len({row.group for row in found}) == 1
    expected = [(None if is_one else row.group, *row[1:4], None, None) for row in found]
    assert parse(dump(found, "csv")) == expected


def test_csv_of_one_group_is_what_kafka_writes() -> None:
    assert dump(ROWS, "csv") == "t,0,5\nt,1,7\n"


def test_csv_of_two_groups_names_them() -> None:
    assert dump([*ROWS, ROWS[0]._replace(group="h")], "csv") == "g,t,0,5\ng,t,1,7\nh,t,0,5\n"


def test_a_csv_may_have_remarks_and_empty_lines() -> None:
    assert parse("# by hand\n\nt,0,5\n") == [CommittedOffset(None, "t", 0, 5)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("t,0", "line 1 is neither"),
        ("t,0,5\nt,x,5", "line 2: 'x' is no partition"),
        ("t,0,-1", "line 1: '-1' is no partition or offset"),
        (f"t,0,{OFFSET_MAX + 1}", "line 1: "),
        ("t,0,٣", "is no partition or offset"),
        ("t,0,5\nt,0,6", "t-0 is there twice"),
        ('t,"0,5', "line 1: "),
        ("[", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("{}", "it is no list"),
        ("[1]", "item 1 has not the keys"),
        ('[{"topic": "t", "partition": 0}]', "item 1 has not the keys"),
        ('[{"topic": "t", "partition": 0, "offset": 1, "offest": 2}]', "item 1 has not the keys"),
        ('[{"topic": 1, "partition": 0, "offset": 1}]', "item 1: group, topic and metadata are texts"),
        ('[{"topic": "t", "partition": true, "offset": 1}]', "item 1: partition, offset"),
        ('[{"topic": "t", "partition": 0, "offset": 1.5}]', "item 1: partition, offset"),
        ('[{"topic": "t", "partition": null, "offset": 1}]', "item 1: 'None' is no partition"),
        ('[{"topic": "t", "partition": 0, "offset": -1}]', "item 1: '-1'"),
    ],
)
def test_what_is_no_file_of_offsets(text: str, why: str) -> None:
    with pytest.raises(BadFile, match=why):
        parse(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text)
    except BadFile:
        pass
