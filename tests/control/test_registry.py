"""A method's arguments are checked by its signature; what is refused is named, with the fix."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, cast

import pytest

from kpybroker.control.catalogue import GROUPS, all_methods
from kpybroker.control.errors import ControlError
from kpybroker.control.hosted import Hosted
from kpybroker.control.registry import JSON, Group, Method, Registry, is_of_type, method, type_name

HOSTED = cast(Hosted, None)


async def make_topic(hosted: Hosted, name: str, partitions: int = 1, config: dict[str, str] | None = None) -> JSON:
    """Make a topic
    of many.

    More about it.
    """
    return [name, partitions, config]


MAKE = method(make_topic)


async def test_arguments_are_given_by_name_and_defaults_are_those_of_the_function() -> None:
    assert await MAKE.call(HOSTED, {"name": "t"}) == ["t", 1, None]
    assert await MAKE.call(HOSTED, {"name": "t", "partitions": 3, "config": {"a": "b"}}) == ["t", 3, {"a": "b"}]


@pytest.mark.parametrize(
    ("arguments", "cause", "fix"),
    [
        ({}, "make_topic: `name` is missing", "give a string"),
        ({"name": "t", "partition": 3}, "make_topic has no argument `partition`", "did you mean `partitions`?"),
        ({"name": "t", "xyz": 3}, "make_topic has no argument `xyz`", "one of config, name, partitions"),
        ({"name": 3}, "make_topic: `name` is 3", "give a string"),
        ({"name": "t", "partitions": "3"}, 'make_topic: `partitions` is "3"', "give an integer"),
        ({"name": "t", "partitions": True}, "make_topic: `partitions` is true", "give an integer"),
        (
            {"name": "t", "config": {"a": 1}},
            'make_topic: `config` is {"a": 1}',
            "give an object, each value a string or null",
        ),
    ],
)
async def test_a_wrong_argument_is_refused(arguments: dict[str, Any], cause: str, fix: str) -> None:
    with pytest.raises(ControlError) as caught:
        await MAKE.call(HOSTED, arguments)
    assert (caught.value.cause, caught.value.fix, caught.value.status) == (cause, fix, 400)


@dataclasses.dataclass(frozen=True)
class Place:
    rack: str
    shelf: int | None = None


async def put(hosted: Hosted, name: str, place: Place, times: int = 1) -> JSON:
    """Put something somewhere."""
    return [name, place, times]


async def test_a_dataclass_stands_for_the_arguments_that_are_its_fields() -> None:
    grouped = method(put)
    assert await grouped.call(HOSTED, {"name": "n", "rack": "a"}) == ["n", Place("a"), 1]
    assert await grouped.call(HOSTED, {"shelf": 3, "times": 2, "rack": "a", "name": "n"}) == ["n", Place("a", 3), 2]
    assert grouped.described()["arguments"] == {
        "name": {"type": "a string"},
        "rack": {"type": "a string"},
        "shelf": {"type": "an integer or null", "default": None},
        "times": {"type": "an integer", "default": 1},
    }
    with pytest.raises(ControlError, match="put: `rack` is missing"):
        await grouped.call(HOSTED, {"name": "n", "shelf": 3})
    with pytest.raises(ControlError, match="put has no argument `place`"):
        await grouped.call(HOSTED, {"name": "n", "rack": "a", "place": {}})


def test_a_value_that_is_shown_in_an_error_is_short() -> None:
    with pytest.raises(ControlError) as caught:
        MAKE.check({"name": ["x" * 1000]})
    assert len(caught.value.cause) < 100


def test_a_method_that_does_not_exist_is_named_with_the_nearest() -> None:
    registry = Registry([Group.of(MAKE)])
    with pytest.raises(ControlError) as caught:
        registry["make_topics"]
    assert (caught.value.fix, caught.value.status) == ("did you mean `make_topic`?", 404)


def test_a_method_describes_itself_by_its_signature_and_the_first_paragraph_of_its_docstring() -> None:
    assert Registry([Group.of(MAKE)]).described() == {
        "methods": {
            "make_topic": {
                "doc": "Make a topic of many.",
                "arguments": {
                    "name": {"type": "a string"},
                    "partitions": {"type": "an integer", "default": 1},
                    "config": {"type": "an object, each value a string or null", "default": None},
                },
            }
        }
    }


def test_two_methods_of_one_name_are_a_mistake() -> None:
    with pytest.raises(AssertionError, match="two methods named make_topic"):
        Registry([Group.of(MAKE), Group.of(MAKE)])


def test_every_method_there_is_describes_itself() -> None:
    described = all_methods().described()["methods"]
    assert {"status", "reset", "log", "stop", "clock", "advance"} <= described.keys()
    assert all(one["doc"].endswith((".", ":")) for one in described.values())


@pytest.mark.parametrize(
    ("annotation", "right", "wrong", "name"),
    [
        (int, [0, -1], [1.0, True, "1", None], "an integer"),
        (float, [0, 1.5], [True, "1"], "a number"),
        (bool, [True, False], [0, "true"], "true or false"),
        (str | None, ["", None], [0], "a string or null"),
        (list[int], [[], [1, 2]], [["1"], {}, None], "a list, each an integer"),
        (list[list[int]], [[[1], [2]]], [[1]], "a list, each a list, each an integer"),
        (dict[str, int], [{}, {"a": 1}], [{"a": "1"}, []], "an object, each value an integer"),
        (dict[str, JSON], [{}, {"a": []}], [[], None], "an object"),
        (list[JSON], [[], [None]], [{}], "a list"),
        (Literal["stop", "kill"], ["stop"], ["Stop", None], '"stop" or "kill"'),
        (JSON, [None, 1, "x", [], {}], [], "any value"),
    ],
)
def test_types(annotation: Any, right: list[Any], wrong: list[Any], name: str) -> None:
    assert [value for value in right if not is_of_type(value, annotation)] == []
    assert [value for value in wrong if is_of_type(value, annotation)] == []
    assert type_name(annotation) == name


def test_a_group_is_loaded_with_the_first_use_of_one_of_its_methods_and_only_then() -> None:
    loads: list[str] = []

    def load(name: str) -> Group:
        def loaded() -> tuple[Method, ...]:
            loads.append(name)
            return (dataclasses.replace(MAKE, name=name),)

        return Group(loaded, (name,))

    registry = Registry([load("a"), load("b")])
    with pytest.raises(ControlError):
        registry["c"]
    assert loads == []
    for _ in range(2):
        assert registry["b"].name == "b"
    assert loads == ["b"]
    assert list(registry.described()["methods"]) == ["a", "b"]
    assert loads == ["b", "a"]


def test_every_method_is_listed_under_its_own_name_and_none_is_left_out() -> None:
    for group in GROUPS:
        assert tuple(one.name for one in group.load()) == group.names
