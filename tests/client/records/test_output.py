"""How records are written."""

from __future__ import annotations

import json

import pytest
import yaml

from kpybroker.client.records.output import writer
from kpybroker.client.records.record import Record
from kpybroker.client.records.template import BadTemplate

RECORD = Record("t", None, b"v\x1b[2J\xff", [("h", b"1")], 0, 5, 0, "CreateTime")


def test_values_are_written_as_they_are() -> None:
    assert writer("value")(RECORD, 0) == b"v\x1b[2J\xff\n"
    assert writer("value")(RECORD._replace(value=None), 0) == b"\n"
    assert writer("value", show_null=True)(RECORD._replace(value=None), 0) == b"NULL\n"


def test_wide_is_safe_for_a_terminal() -> None:
    line = writer("wide")(RECORD, 0).decode()
    assert line == "1970-01-01T00:00:00.000Z t[0]@5 NULL => v\\x1b[2J\\xff  h=1\n"


def test_programs_get_everything() -> None:
    row = json.loads(writer("json")(RECORD, 0))
    assert yaml.safe_load(writer("yaml")(RECORD, 0)) == [row]


def test_a_format_needs_a_verb_or_an_escape() -> None:
    assert writer("\\n")(RECORD, 0) == b"\n"
    with pytest.raises(BadTemplate, match="'jsno' is no format"):
        writer("jsno")


def test_a_terminal_obeys_no_value() -> None:
    record = RECORD._replace(key=b"\x9b1m\n", headers=[("\udcff\x1b", b"\x07")])
    assert writer("value", is_terminal=True)(record, 0) == b"v\\x1b[2J\\xff\n"
    form = "%k %h %h{%k=%v} %v{hex} %V\x1b\\n"
    assert writer(form, is_terminal=True)(record, 0).startswith(
        b"\\x9b1m\n \\xff\\x1b=\\x07 \\xff\\x1b=\\x07 761b5b324aff 6\x1b"
    )
    assert writer(form)(record, 0).startswith(b"\x9b1m\n \xff\x1b=\x07 \xff\x1b=\x07 761b5b324aff 6\x1b")
