"""The kinds of arguments: each returns what to give instead of a value, or None where the value is right."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kpybroker.testing.checking.calls import Kind, did_you_mean

TIMEOUT_S_MAX: Final = 600
PARTITIONS_MAX: Final = 10_000
OFFSET_MAX: Final = 2**63 - 1
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TOPIC_WORDS: Final = "1 to 249 letters, digits, '.', '_' and '-'"


# --- of one value


def flag(value: Any) -> str | None:
    """True or False."""
    return None if isinstance(value, bool) else "give True or False"


def text(value: Any) -> str | None:
    """Text that is not empty, and that UTF-8 can have."""
    if not isinstance(value, str) or not value:
        return "give a text"
    return None if is_encodable(value) else "give a text without lone surrogates, which UTF-8 cannot have"


def is_encodable(value: str) -> bool:
    """Whether UTF-8 can have this text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def topic(value: Any) -> str | None:
    """A name that a topic may have."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return "give the name of one topic"
    if not isinstance(value, str):
        return "give the name of a topic, as text"
    return None if is_topic_name(value) else f"give a name of {_TOPIC_WORDS}"


def is_topic_name(value: Any) -> bool:
    """Whether a topic may have this name."""
    return isinstance(value, str) and _TOPIC.fullmatch(value) is not None and value not in (".", "..")


def integer(lowest: int, highest: int) -> Kind:
    """An integer in a range."""

    def kind(value: Any) -> str | None:
        is_right = isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest
        return None if is_right else f"give an integer from {lowest} to {highest}"

    return kind


index: Final = integer(0, 2**31 - 1)
"""Of a partition, or a broker."""
count: Final = integer(1, 2**31 - 1)
offset: Final = integer(0, OFFSET_MAX)
partitions: Final = integer(1, PARTITIONS_MAX)


def number(lowest: float, highest: float) -> Kind:
    """A number in a range."""

    def kind(value: Any) -> str | None:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        return None if is_number and lowest <= value <= highest else f"give a number from {lowest:g} to {highest:g}"

    return kind


timeout: Final = number(0, TIMEOUT_S_MAX)
"""Seconds."""


def path(value: Any) -> str | None:
    """A path of a file or directory."""
    is_path = isinstance(value, (str, os.PathLike)) and isinstance(os.fspath(value), str)
    return None if is_path and os.fspath(value) and "\0" not in os.fspath(value) else "give a path"


def directory(value: Any) -> str | None:
    """A path where a directory is, or may be made."""
    fix = path(value)
    if fix is None and os.path.exists(value) and not os.path.isdir(value):
        return "give a directory: this is a file"
    if fix is None and "," in os.fspath(value):
        return "give one directory, without a comma in its path"
    return fix


def function(value: Any) -> str | None:
    """What can be called without arguments, and is not a coroutine function."""
    import inspect

    if not callable(value):
        return "give a function: lambda: ..."
    if inspect.iscoroutinefunction(value):
        return "give a function that is not a coroutine: its result would never be awaited"
    try:
        inspect.signature(value).bind()
    except TypeError:
        return "give a function without arguments: lambda: ..."
    except ValueError:
        pass  # a builtin has no signature
    return None


def called(value: Any) -> str | None:
    """What can be called and is not a coroutine function."""
    import inspect

    if not callable(value):
        return "give a function, and its arguments behind it"
    return "await it as it is: it is a coroutine" if inspect.iscoroutinefunction(value) else None


def predicate(value: Any) -> str | None:
    """A function of one argument, which is not a coroutine function, or a mapping of paths to values."""
    import inspect

    if isinstance(value, Mapping):
        return mapping(text, lambda _: None, "")(value) if value else "give at least one path, or leave it out"
    if not callable(value):
        return "give a function of the request, or a mapping of a path to a value"
    if inspect.iscoroutinefunction(value):
        return "give a function that is not a coroutine: its result would never be awaited"
    try:
        inspect.signature(value).bind(None)
    except TypeError:
        return "give a function of one argument, the request"
    except ValueError:
        pass  # a builtin has no signature
    return None


def api(value: Any) -> str | None:
    """An API by its name or key; which there are, the broker knows."""
    is_right = isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""
    return None if is_right else "give an API by name, such as 'Produce', or by key"


def error(value: Any) -> str | None:
    """An error by its name or code."""
    is_right = isinstance(value, (str, int)) and not isinstance(value, bool) and value not in ("", 0)
    return None if is_right else "give an error by name, such as 'NOT_LEADER_OR_FOLLOWER', or by code"


def release(value: Any) -> str | None:
    """A release of Kafka."""
    return None if isinstance(value, str) and value else "give the release as text, such as '3.9'"


# --- of one kind or another


def optional(kind: Kind) -> Kind:
    """The same, or None."""

    def or_none(value: Any) -> str | None:
        return None if value is None else kind(value)

    return or_none


def one_of(*words: str) -> Kind:
    """One of some words."""

    def kind(value: Any) -> str | None:
        if isinstance(value, str):
            return None if value in words else did_you_mean(value, words, cutoff=0.7)
        return f"give one of {', '.join(map(repr, words))}"

    return kind


def each(kind: Kind, what: str) -> Kind:
    """A list, tuple, set or range of these, not one of them."""

    def of_all(value: Any) -> str | None:
        if not isinstance(value, (list, tuple, set, frozenset, range)):
            return f"give a list of {what}"
        for one in value:
            fix = kind(one)
            if fix is not None:
                return f"give a list of {what}; {one!r} is wrong: {fix}"
        return None

    return of_all


def one_or_each(kind: Kind, what: str) -> Kind:
    """One of these, or a list of them that is not empty."""
    of_all = each(kind, what)

    def some(value: Any) -> str | None:
        if isinstance(value, (list, tuple, set, frozenset, range)):
            return of_all(value) if value else f"give at least one of the {what}, or leave it out"
        return kind(value)

    return some


def mapping(key: Kind, value: Kind, what: str) -> Kind:
    """A mapping whose keys and values are of these kinds."""

    def kind(given: Any) -> str | None:
        if not isinstance(given, Mapping):
            return f"give {what}"
        for name, one in given.items():
            fix = key(name)
            if fix is not None:
                return f"the key {name!r} is wrong: {fix}"
            fix = value(one)
            if fix is not None:
                return f"the value of {name!r} is wrong: {fix}"
        return None

    return kind


def version_range(value: Any) -> str | None:
    """The newest version of an API, its oldest and newest, or None."""
    pair = value if isinstance(value, (tuple, list)) else (0, value)
    is_right = value is None or (len(pair) == 2 and not any(map(index, pair)) and pair[0] <= pair[1])
    return None if is_right else "give the newest version, a pair of the oldest and the newest, or None"


# --- of the kit


def setting(value: Any) -> str | None:
    """A value of a configuration key."""
    is_right = isinstance(value, (str, int, float)) and value == value
    if isinstance(value, str) and not is_encodable(value):
        return "give a text without lone surrogates"
    return None if is_right else "give a text, a number, True or False, and leave out a key that is to have its default"


settings: Final = mapping(text, setting, "a mapping of Kafka's keys to values")


def client_settings(value: Any) -> str | None:
    """Further settings of a client, which has its address."""
    for name in value:
        if name in ("bootstrap_servers", "bootstrap.servers"):
            return "leave it out: the client is one of this broker"
    return None


def subscribed(value: Any) -> str | None:
    """Topics one by one, or patterns of them."""
    for one in value:
        if isinstance(one, (list, tuple, set, frozenset)):
            return "give the topics one by one: consumer('group', 'orders', 'payments')"
        fix = text(one)
        if fix is not None:
            return f"{fix} for each topic"
    return None


def brokers(value: Any) -> str | None:
    """Groups of brokers, one by one."""
    for group in value:
        if not isinstance(group, (list, tuple, set, frozenset, range)) or not group or any(map(index, group)):
            return "give lists of ids, each with a broker at least: partition([0], [1, 2])"
    return None


def topics(value: Any) -> str | None:
    """Names of topics, or a mapping of names to how many partitions each has."""
    if isinstance(value, (str, bytes)):
        return f"give a list of names: [{value!r}]"
    if isinstance(value, Mapping):
        return mapping(topic, partitions, "a mapping of names to numbers of partitions")(value)
    fix = each(topic, "names")(value)
    if fix is not None:
        return f"{fix}; or a mapping of names to numbers of partitions"
    names = list(value)
    return next((f"name {one!r} once" for one in names if names.count(one) > 1), None)


def listed(what: str) -> Kind:
    """What can be read one by one, and is not one text or mapping."""

    def kind(value: Any) -> str | None:
        if isinstance(value, (str, bytes, bytearray, memoryview)):
            return f"give a list of {what}: [{value!r}]"
        if isinstance(value, Mapping):
            return f"give a list of {what}: a mapping is one of them"
        return None if isinstance(value, Iterable) else f"give a list of {what}"

    return kind


def elsewhere(fix: str) -> Kind:
    """What is an argument of something else."""
    return lambda value: fix


def instance_of(load: Callable[[], type], fix: str) -> Kind:
    """An object of a class, which is imported when it is needed."""

    def kind(value: Any) -> str | None:
        return None if isinstance(value, load()) else fix

    return kind
