"""Which records a filter accepts, and filters that are none."""

from __future__ import annotations

import json

import pytest

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.records.record import Record
from kpybroker.console.queries.filters import Filters, compiled
from kpybroker.console.queries.outside import json_filters

RECORD = Record(
    "t", b"k1", b'{"total": 7, "state": "paid", "items": [{"sku": "a"}]}', [("trace", b"x1"), ("empty", None)]
)


@pytest.mark.parametrize(
    ("filters", "accepted"),
    [
        (Filters(), True),
        (Filters(key="k"), True),
        (Filters(key="K"), False),
        (Filters(value="paid"), True),
        (Filters(header="trace"), True),
        (Filters(header="trace=x"), True),
        (Filters(header="trace=y"), False),
        (Filters(header="empty"), True),
        (Filters(header="tra"), False),
        (Filters(path="$.items[0].sku"), True),
        (Filters(path="$.items[1]"), False),
        (Filters(path="@.total > 5 && @.state == 'paid'"), True),
        (Filters(path="@.total > 7"), False),
        (Filters(key="k", path="@.total > 7"), False),
    ],
)
def test_filters(filters: Filters, accepted: bool) -> None:
    assert compiled(filters)(RECORD) is accepted


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"text", b"7", b"[" * 100_000])
def test_a_value_that_is_no_object_matches_no_path(value: bytes | None) -> None:
    assert not compiled(Filters(path="@.total > 5"))(RECORD._replace(value=value))


@pytest.mark.parametrize(
    "path",
    [
        *("$[", "@.total >", "$..[?", "match(@.a, '(a+)+b')", "(" * 1900, "x" * 3000),
        *("@.total > 1e999", "$[1e9]", f"$[{'9' * 1900}]", "$[?length(@) == -1E400]"),
    ],
)
def test_a_path_that_is_none_says_what_one_is(path: str) -> None:
    with pytest.raises(CommandError) as caught:
        compiled(Filters(path=path))
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "path",
    [
        "$..[?$..[?$..[?@.zz]]]",
        "$..*..*..*..*..*..zz",
        "@..[?$..[?$..[?@.zz]]]",
        "@.text =~ /(a|a)*b/",
        "$[*,*,*,*][*,*,*,*][*,*,*,*][*,*,*,*][*,*,*,*][*,*,*,*][*,*,*,*][*,*,*,*]..zz",
    ],
)
def test_a_path_without_an_end_is_an_error_of_its_page(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    document: dict[str, object] = {"text": "a" * 40, "list": [[{"a": number}] * 20 for number in range(40)]}
    for _ in range(40):
        document = {"in": document, "list": [document["list"]], "text": document["text"]}
    with monkeypatch.context() as patch:
        patch.setattr(json_filters, "RECORD_S_MAX", 0.2)  # it computes as long as it may
        with pytest.raises(CommandError, match="needs more than") as caught:
            compiled(Filters(path=path))(RECORD._replace(value=json.dumps(document).encode()))
    assert caught.value.exit_code == 2
    assert compiled(Filters(path="$.total"))(RECORD)
