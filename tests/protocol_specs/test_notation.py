"""The spec notation: what it says, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol_specs.notation import (
    FOREVER,
    SpecError,
    camel_case,
    lower_camel_case,
    parse_range,
    read_spec,
    snake_case,
)

EXAMPLE = """\
# Says hello.
# On two lines.
api 7 Hello
versions 1-4, flexible 3+

request
  name: string? 2+ ignorable = null  # whom to greet
  times: int32 = -1
  friends: [Friend]?3-4 key
    id: uuid
    since: int64 4+ tag 0
  oldStyle: int8

response
  error: Failure? = null
  more: [Failure] tag 2 from 4
  struct Failure
    code: int16 as errorCode
"""


def spec_file(folder: Path, text: str) -> Path:
    path = folder / "hello.spec"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_spec_reads_as_it_says(tmp_path: Path) -> None:
    spec = read_spec(spec_file(tmp_path, EXAMPLE.replace("oldStyle", "old_style")))
    assert (spec.api_key, spec.name, spec.versions, spec.flexible_from) == (7, "Hello", (1, 4), 3)
    assert spec.doc == "Says hello. On two lines."
    request, response = spec.messages
    assert (request.name, response.name) == ("HelloRequest", "HelloResponse")
    name, times, friends, _ = request.fields
    assert (name.kafka_name, name.versions, name.nullable) == ("Name", (2, FOREVER), (2, FOREVER))
    assert (name.default_null, name.ignorable, name.doc) == (True, True, "whom to greet")
    assert (times.default, times.versions) == (-1, (0, FOREVER))
    assert (friends.array, friends.type, friends.nullable, friends.map_key) == (True, "Friend", (3, 4), True)
    (friend,) = request.structs
    since = friend.fields[1]
    assert (since.versions, since.tag, since.tagged) == ((4, FOREVER), 0, (4, FOREVER))
    error, more = response.fields
    assert (error.is_struct, error.default_null, more.tagged) == (True, True, (4, FOREVER))
    assert response.structs[0].fields[0].kafka_name == "errorCode"


BROKEN = {
    "not a field": EXAMPLE,
    "indent by two": EXAMPLE.replace("  times", "   times").replace("oldStyle", "old_style"),
    "unknown type Fiend": EXAMPLE.replace("oldStyle: int8", "old: Fiend"),
    "defined twice": EXAMPLE.replace("oldStyle: int8", "old: [Friend]\n    x: int8"),
    "used twice": EXAMPLE.replace("oldStyle", "times"),
    "cannot be null": EXAMPLE.replace("oldStyle: int8", "old: int8?"),
    "never nullable": EXAMPLE.replace("oldStyle: int8", "old: string = null"),
    "only start as null": EXAMPLE.replace("oldStyle: int8", "old: [int8] = 3"),
    "expected section `request`": EXAMPLE.replace("\nrequest", "\nquestion"),
    "expected `versions": EXAMPLE.replace("flexible", "supple"),
    "expected `api": EXAMPLE.replace("api 7", "api"),
    "unexpected line": EXAMPLE.replace("oldStyle", "old") + "\nappendix\n",
    "unexpected end": "# Nothing.\napi 7 Hello",
}


@pytest.mark.parametrize("complaint", BROKEN)
def test_mistakes_are_refused_with_the_file_named(tmp_path: Path, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint) as caught:
        read_spec(spec_file(tmp_path, BROKEN[complaint]))
    assert "hello.spec" in str(caught.value)


def test_names_are_mechanical() -> None:
    assert snake_case("V3AndBelowTopics") == "v3_and_below_topics"
    assert camel_case("v3_and_below_topics") == "V3AndBelowTopics"
    assert lower_camel_case("commit_timestamp") == "commitTimestamp"


def test_ranges() -> None:
    assert [parse_range(text) for text in ("3+", "0-7", "2")] == [(3, FOREVER), (0, 7), (2, 2)]
    for text in ("", "7-3", "x", "1-"):
        with pytest.raises(ValueError, match="version range"):
            parse_range(text)
