"""Records to JSON lines and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.client.records.json_lines import BadLine, dump, load
from kpybroker.client.records.record import Record

maybe_bytes = st.none() | st.binary(max_size=20) | st.text(max_size=20).map(lambda text: text.encode())
records = st.builds(
    Record,
    topic=st.text(min_size=1, max_size=10),
    key=maybe_bytes,
    value=maybe_bytes,
    headers=st.lists(st.tuples(st.text(max_size=8), maybe_bytes), max_size=4),
    partition=st.none() | st.integers(0, 2**31 - 1),
    offset=st.none() | st.integers(0, 2**63 - 1),
    timestamp_ms=st.none() | st.integers(0, 2**62),
    timestamp_type=st.none() | st.sampled_from(["CreateTime", "LogAppendTime"]),
    leader_epoch=st.none(),
    delivery_count=st.none(),
)


@given(records)
def test_every_record_survives(record: Record) -> None:
    line = dump(record)
    assert line.count(b"\n") == 1
    assert load(line) == record


def test_the_shape_does_not_change() -> None:
    record = Record("t", b"k", b"\xff", [("h", None)], 0, 7, 1, "CreateTime")
    assert json.loads(dump(record)) == {
        "topic": "t",
        "partition": 0,
        "offset": 7,
        "timestamp": 1,
        "timestamp_type": "CreateTime",
        "key": "k",
        "value": {"base64": "/w=="},
        "headers": [{"key": "h", "value": None}],
    }


def test_little_is_enough() -> None:
    assert load(b'{"value": null}') == Record(None, None, None, [])
    assert load(b'{"value": "v", "headers": {"a": "b"}}').headers == [("a", b"b")]


def test_lines_of_kcat_are_read() -> None:
    line = b'{"topic":"t","partition":1,"offset":2,"tstype":"create","ts":5,"broker":0,"headers":["a","b"],"key":null,'
    record = load(line + b'"payload":"v"}')
    assert record == Record("t", None, b"v", [("a", b"b")], 1, 2, 5)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b"x", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"{}", "no field 'value'"),
        (b'{"value": {"a": 1e400}}', "value cannot be written as JSON: 1e400 has more digits"),
        (b'{"value": {"a": 0.12345678901234567890}}', "more digits than a double"),
        (b'{"value": NaN}', "value cannot be written as JSON"),
        (b'{"value": {"a": 1, "a": 2}}', "two fields of an object have one name"),
        (b'{"value": ["\\ud800"]}', "value cannot be written as JSON"),
        (b'{"value": "v", "headers": {"h": 1}}', "a header is neither"),
        (b'{"value": "v", "key": {"base64": "!"}}', "not base64"),
        (b'{"value": {"base64": "!"}}', "not base64"),
        (b'{"value": "v", "vaule": 1}', "a field 'vaule'"),
        (b'{"value": "v", "partition": "0"}', "partition is not a whole number"),
        (b'{"value": "v", "partition": true}', "partition is not a whole number"),
        (b'{"value": "v", "topic": 1}', "topic is not a string"),
        (b'{"value": "v", "headers": 1}', "headers is not a list"),
        (b'{"value": "v", "headers": ["a"]}', "not of pairs"),
        (b'{"value": "v", "headers": [{"value": "x"}]}', "a header is not like"),
        (b'{"value": "\\ud800"}', "surrogate"),
        (b'{"value": "\xff"}', "not JSON"),
    ],
)
def test_what_is_no_record_is_refused_with_the_reason(line: bytes, named: str) -> None:
    with pytest.raises(BadLine, match=named):
        load(line)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ('{"a": [1, {"b": null}], "c": "\u00fc"}', '{"a":[1,{"b":null}],"c":"\u00fc"}'),
        ("[]", "[]"),
        ("1.50", "1.5"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("true", "true"),
        ('{"base64": 1}', '{"base64":1}'),
        ('{"base64": "eA==", "b": 1}', '{"base64":"eA==","b":1}'),
    ],
)
def test_other_json_is_its_text(value: str, written: str) -> None:
    record = load(f'{{"value": {value}, "key": {value}}}'.encode())
    assert (record.key, record.value) == (written.encode(), written.encode())
    assert json.loads(dump(record))["value"] == json.loads(value)
    assert load(b'{"value": "x"}').value == b"x"


def test_what_a_schema_encodes_is_json_whatever_it_is() -> None:
    record = load(b'{"key": "k", "value": {"base64": "eA=="}}', encoded=frozenset({"key", "value"}))
    assert (record.key, record.value) == (b'"k"', b'{"base64":"eA=="}')
    assert load(b'{"key": "k", "value": null}', encoded=frozenset({"value"})) == Record(None, b"k", None, [])


def test_header_keys_of_any_bytes_round_trip() -> None:
    record = Record("t", b"k", b"v\xc2\x9b", [("\udcff\udcfe", b"1"), ("ok", None), ("", b"")], 0, 1, 2, "CreateTime")
    line = dump(record)
    assert json.loads(line)["headers"][0] == {"key": {"base64": "//4="}, "value": "1"}
    assert b"\\u009b" in line
    assert load(line) == record


@pytest.mark.parametrize(
    "header", ['{"key":null}', '{"key":5}', '{"key":{"base64":"?"}}', '{"value":"x"}', '{"key":"\\ud800"}']
)
def test_a_header_without_a_key_is_refused(header: str) -> None:
    with pytest.raises(BadLine):
        load(b'{"value":"v","headers":[%s]}' % header.encode())


def test_a_line_that_is_nested_too_deeply() -> None:
    with pytest.raises(BadLine, match="nested too deeply"):
        load(b'{"value":' + b"[" * 100_000)
