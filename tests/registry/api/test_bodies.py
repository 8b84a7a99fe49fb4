"""Members of bodies in the types that they should have."""

from __future__ import annotations

from typing import Any

import pytest

from kpybroker.registry.api import bodies
from kpybroker.registry.errors import RegistryError


@pytest.mark.parametrize(
    ("read", "value", "found"),
    [
        (bodies.text, 1, "1"),
        (bodies.text, True, "true"),
        (bodies.text, "", ""),
        (bodies.whole, "7", 7),
        (bodies.whole, "-1", -1),
        (bodies.whole, 1.9, 1),
        (bodies.whole, " ", None),
        (bodies.flag, 0, False),
        (bodies.flag, 3, True),
        (bodies.flag, "TRUE", True),
        (bodies.flag, "", None),
        (bodies.list_of(bodies.text), [], []),
        (bodies.METADATA, {"tags": {"a": ["y", "x", "x"]}, "properties": {}, "more": 1}, {"tags": {"a": ["x", "y"]}}),
        (bodies.RULE_SET, {"domainRules": [{"name": "a", "more": 1}]}, {"domainRules": [{"name": "a"}]}),
    ],
)
def test_what_can_be_converted_is(read: bodies.Reader, value: Any, found: Any) -> None:
    assert read("it", value) == found


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (bodies.text, {}),
        (bodies.text, []),
        (bodies.whole, True),
        (bodies.whole, "x"),
        (bodies.whole, "1" * 5000),
        (bodies.whole, 2**31),
        (bodies.whole, float("inf")),
        (bodies.whole, float("nan")),
        (bodies.flag, 1.5),
        (bodies.flag, "yes"),
        (bodies.list_of(bodies.text), {}),
        (bodies.list_of(bodies.text), [[]]),
        (bodies.METADATA, "x"),
        (bodies.METADATA, {"properties": {"a": None}}),
        (bodies.METADATA, {"tags": {"a": ["b", None]}}),
        (bodies.METADATA, {"sensitive": [None]}),
        (bodies.RULE_SET, {"domainRules": [{"tags": [None, "a"]}]}),
        (bodies.RULE_SET, {"domainRules": [{"mode": "write"}]}),
    ],
)
def test_what_cannot_is_refused_with_the_name(read: bodies.Reader, value: Any) -> None:
    with pytest.raises(RegistryError, match="it") as caught:
        read("it", value)
    assert caught.value.code == 400


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", 422), (b" ", 422), (b"null", 422), (b"{", 400), (b"[]", 400), (b"{} x", 400), (b'{"id":NaN}', 400)],
)
def test_a_body_is_an_object(content: bytes, code: int) -> None:
    with pytest.raises(RegistryError) as caught:
        bodies.members(bodies.loaded(content), bodies.SCHEMA)
    assert caught.value.code == code


def test_null_stays_and_unknown_members_go() -> None:
    assert bodies.members({"alias": None, "normalize": 1, "more": 2}, bodies.CONFIG) == {
        "alias": None,
        "normalize": True,
    }
