"""What is asked of Jolokia is bounded before it is matched: anyone may ask, and the loop waits for it."""

from __future__ import annotations

import json

import pytest

from kpybroker.metrics.jolokia.names import PROPERTIES_MAX, parse_name
from kpybroker.metrics.jolokia.requests import (
    ATTRIBUTES_MAX,
    TEXT_MAX,
    JolokiaRequest,
    RequestError,
    from_get,
    from_post,
)


def name_of(properties: int) -> str:
    return "d:" + ",".join(f"k{number}=v" for number in range(properties))


def test_a_name_has_no_more_properties_than_any_mbean() -> None:
    assert len(parse_name(name_of(PROPERTIES_MAX)).properties) == PROPERTIES_MAX
    with pytest.raises(RequestError, match="More than 32 key properties"):
        parse_name(name_of(PROPERTIES_MAX + 1))


@pytest.mark.parametrize("name", ["d:k=1,k=2", 'd:k="1",j=2,k=3'])
def test_a_property_twice_is_refused_as_in_java(name: str) -> None:
    with pytest.raises(RequestError, match="key `k' already defined"):
        parse_name(name)


@pytest.mark.parametrize(("name", "is_open"), [("d:*", True), ("d:a=b,*", True), ("d:*,a=b", True), ("d:a=b", False)])
def test_a_star_opens_a_name_wherever_it_is(name: str, is_open: bool) -> None:
    assert parse_name(name).is_open is is_open


LONG = {
    "name": {"type": "read", "mbean": "d:k=" + "x" * TEXT_MAX},
    "name of stars": {"type": "search", "mbean": "d:k=" + "*a" * TEXT_MAX},
    "attributes": {"type": "read", "mbean": "d:k=v", "attribute": [f"{n}" for n in range(ATTRIBUTES_MAX + 1)]},
    "attribute": {"type": "read", "mbean": "d:k=v", "attribute": "x" * (TEXT_MAX + 1)},
    "path": {"type": "list", "path": "a/" * TEXT_MAX},
    "path of slashes": {"type": "list", "path": "a" + "/" * TEXT_MAX + "b"},
}


@pytest.mark.parametrize("asked", LONG.values(), ids=LONG)
def test_what_is_longer_than_anything_here_is_refused(asked: dict[str, object]) -> None:
    (refused,), _ = from_post(json.dumps(asked).encode())
    assert isinstance(refused, RequestError)
    assert refused.status == 400
    (first, _, last), _ = from_post(json.dumps([{"type": "version"}, asked, {"type": "list"}]).encode())
    assert isinstance(first, JolokiaRequest)
    assert isinstance(last, JolokiaRequest)


def test_so_it_is_in_a_path_of_a_get() -> None:
    with pytest.raises(RequestError, match="path of more than"):
        from_get("/read/" + "x" * TEXT_MAX, "")
