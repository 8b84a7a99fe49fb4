"""Jolokia's paths and bodies, object names and patterns."""

from __future__ import annotations

import json

import pytest

from kpybroker.metrics.jolokia.names import Matcher, parse_name
from kpybroker.metrics.jolokia.requests import (
    REQUESTS_MAX,
    JolokiaRequest,
    RequestError,
    from_get,
    from_post,
    split_path,
)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("read/a:b=c/Count", ["read", "a:b=c", "Count"]),
        ('a!/b/c!!d/e!"', ["a/b", "c!d", 'e"']),
        ("a/b!", ["a", "b!"]),
        ("", []),
    ],
)
def test_an_exclamation_mark_escapes(path: str, parts: list[str]) -> None:
    assert split_path(path) == parts


@pytest.mark.parametrize(
    ("path", "query", "request_"),
    [
        ("", "", JolokiaRequest("version")),
        ("/version", "", JolokiaRequest("version")),
        ("/read/a:b=c", "", JolokiaRequest("read", "a:b=c")),
        ("/read/a:b=%22x!/y%22/Count,Mean", "", JolokiaRequest("read", 'a:b="x/y"', ("Count", "Mean"))),
        ("/", "p=/search/a:*", JolokiaRequest("search", "a:*")),
        ("/list/a/b=c", "canonicalNaming=false", JolokiaRequest("list", path=("a", "b=c"), canonical=False)),
    ],
)
def test_a_get_is_a_request(path: str, query: str, request_: JolokiaRequest) -> None:
    assert from_get(path, query) == request_


@pytest.mark.parametrize(
    ("path", "error_type", "status"),
    [
        ("/read", "java.lang.IllegalArgumentException", 400),
        ("/dance/a:b=c", "java.lang.IllegalArgumentException", 400),
        ("/exec/a:b=c/gc", "java.lang.SecurityException", 403),
    ],
)
def test_a_wrong_get_is_an_error(path: str, error_type: str, status: int) -> None:
    with pytest.raises(RequestError) as found:
        from_get(path, "")
    assert (found.value.error_type, found.value.status) == (error_type, status)


def test_a_post_has_one_request_or_several_and_each_fails_alone() -> None:
    one = {"type": "READ", "mbean": "a:b=c", "attribute": ["Count"], "config": {"canonicalNaming": "false"}}
    assert from_post(json.dumps(one).encode()) == ([JolokiaRequest("read", "a:b=c", ("Count",), (), False)], False)
    several = [one, {"type": "read"}, 7, {"type": "write"}, one | {"attribute": 1}]
    found, in_array = from_post(json.dumps(several).encode())
    assert in_array
    assert [type(each) for each in found] == [JolokiaRequest, *[RequestError] * 4]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 60_000, json.dumps([{}] * (REQUESTS_MAX + 1)).encode()])
def test_a_wrong_body_is_an_error(body: bytes) -> None:
    with pytest.raises(RequestError):
        from_post(body)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Key properties cannot be empty"),
        ("a", "Key properties cannot be empty"),
        ("a:", "Key properties cannot be empty"),
        ("a:b", "Unterminated key property part"),
        ("a:b=c,b=d", "key `b' already defined"),
        ("a:b=c=d", "Invalid character '=' in value part of property"),
        ('a:b="c', "Missing termination quote"),
        ("a:*b=c", "Invalid character found after '*': end of name or ',' expected"),
        ("a:b*=c", "Invalid character '*' in key part of property"),
        ("a:=c", "Invalid key (empty)"),
    ],
)
def test_a_malformed_name_is_an_error_in_the_words_of_java(text: str, reason: str) -> None:
    with pytest.raises(RequestError) as found:
        parse_name(text)
    assert found.value.message == f"Invalid object name. {reason}"


def test_a_name_is_canonical_or_as_it_was_written() -> None:
    name = parse_name('a:z="1,2",b=c,*')
    assert name.text(canonical=True) == 'a:b=c,z="1,2",*'
    assert name.text(canonical=False) == 'a:z="1,2",b=c,*'
    assert name.is_pattern
    assert not parse_name(r'a:b="\*"').is_pattern


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("k.s:*,type=T", True),
        ("k.s:type=T,*,topic=u", False),
        ("*:*", True),
        ("k.s:type=T,topic=t", True),
        ("k.*:type=T,topic=?", True),
        ("k.s:topic=*,type=T*", True),
        ("k.s:type=T", False),
        ("k.s:type=T,*", True),
        ("k.s:type=U,*", False),
        ("k.s:type=T,topic=[t]", False),
        ("k.s:type=T,partition=0,*", False),
        ("j:*", False),
    ],
)
def test_a_pattern_matches_as_in_java(pattern: str, matches: bool) -> None:
    matcher = Matcher(parse_name(pattern))
    found = (
        matcher.may_match("k.s", {"type": "T"}, ("topic", "partition"))
        and matcher.wants(frozenset(["type", "topic"]))
        and matcher.matches_tags((("topic", "t"),))
    )
    assert found is matches


def test_a_hostile_pattern_is_decided() -> None:
    """A matcher that tries all ways would not end."""
    matcher = Matcher(parse_name(f"a:b={'x*' * 300}y"))
    assert not matcher.may_match("a", {"b": "x" * 2000}, ())
