"""printf formats of records."""

from __future__ import annotations

import pytest

from kpybroker.client.records.record import Record
from kpybroker.client.records.template import BadTemplate, compile_template, unescape

RECORD = Record("orders", b"k1", "wörd".encode(), [("a", b"1"), ("b", None)], 3, 42, 1_700_000_000_123, "CreateTime", 7)
NULLS = Record("t", None, None, [], None, None, None)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("%t[%p]@%o %e", b"orders[3]@42 7"),
        ("%k=%v;%s", "k1=wörd;wörd".encode()),
        ("%K %V %S", b"2 5 5"),
        ("%R", b"\0\0\0\5"),
        ("%h|%H", b"a=1,b=|2"),
        ("%h{%k:%v/%i }", b"a:1/0 b:/1 "),
        ("%T %d", b"1700000000123 1700000000123"),
        ("%d{iso} %d{s}", b"2023-11-14T22:13:20.123Z 1700000000"),
        ("%d{strftime[%F %H]}", b"2023-11-14 22"),
        ("%i%%", b"9%"),
        ("%k{hex} %k{base64} %v{json}", '6b31 azE= "wörd"'.encode()),
        (r"a\tb\n\r\\\x41\0", b"a\tb\n\r\\A\0"),
        ("{%k}", b"{k1}"),
        ("", b""),
    ],
)
def test_a_format(template: str, expected: bytes) -> None:
    assert compile_template(template)(RECORD, 9) == expected


def test_null_is_what_the_caller_says_and_lengths_are_minus_one() -> None:
    write = compile_template("%k %v %K %V %T %p %d{iso} %k{json} %k{hex}", b"NULL")
    assert write(NULLS, 0) == b"NULL NULL -1 -1 -1 -1 -1 null NULL"
    assert compile_template("%k|%v")(NULLS, 0) == b"|"
    assert compile_template("%R")(NULLS, 0) == b"\xff\xff\xff\xff"


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    record = NULLS._replace(value=b"\xff\x00", key=b"\xfe")
    assert compile_template("%v")(record, 0) == b"\xff\x00"
    assert compile_template("%k{json}")(record, 0) == b'{"base64": "/g=="}'


def test_a_time_beyond_the_calendar_stays_a_number() -> None:
    assert compile_template("%d{iso}")(RECORD._replace(timestamp_ms=10**18), 0) == b"1000000000000000000"


@pytest.mark.parametrize(
    ("template", "named"),
    [
        ("%z", "%z is no verb"),
        ("%", "% is no verb"),
        ("%k{rot13}", "hex, base64, json"),
        ("%d{x}", "strftime"),
        ("%k{hex", "not closed"),
        (r"\q", r"\\q is no escape"),
        ("%h{%q}", "%q is no verb"),
    ],
)
def test_a_bad_format_is_refused_with_what_there_is(template: str, named: str) -> None:
    with pytest.raises(BadTemplate, match=named):
        compile_template(template)


def test_an_escape_at_the_end_is_refused() -> None:
    with pytest.raises(BadTemplate):
        unescape("a\\")
