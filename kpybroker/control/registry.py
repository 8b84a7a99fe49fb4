"""Methods of the channel, made from functions: one signature and one docstring are the check, the help and the API.

A method is an async function whose first parameter is the `Hosted`; the others are its arguments, by name:

    async def create_topic(hosted: Hosted, name: str, partitions: int = 1) -> JSON:
        \"\"\"Create a topic.\"\"\"

Arguments are JSON. Their annotations may be `str`, `int`, `float`, `bool`, `None`, `JSON` (anything), `list[...]`,
`dict[str, ...]`, `Literal[...]` and unions of these. Nothing is converted, except an integer to a float.

A parameter that is a dataclass stands for several arguments, which are its fields: a caller gives these by their names,
as if they were parameters, and the function gets one value.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kpybroker.control.errors import ControlError, did_you_mean

if TYPE_CHECKING:
    from kpybroker.control.hosted import Hosted

JSON = Any
"""What `json.dumps` takes: bytes are represented by `kpybroker.control.bytes_json`."""

REQUIRED: Any = inspect.Parameter.empty

_NAMES: dict[Any, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    None: "null",
    types.NoneType: "null",
    Any: "any value",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a method. `default` is `REQUIRED` where it must be given."""

    name: str
    annotation: Any
    default: Any

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is REQUIRED

    def described(self) -> JSON:
        """Its entry in the list of methods."""
        entry = {"type": type_name(self.annotation)}
        return entry if self.is_required else {**entry, "default": self.default}


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the channel; make it with `method`."""

    name: str
    doc: str
    parameters: Mapping[str, Parameter]
    """Its arguments."""
    function: Callable[..., Awaitable[JSON]]
    groups: Mapping[str, type[Any]]
    """Parameters of the function that stand for several arguments, and what each is."""

    async def call(self, hosted: Hosted, arguments: Mapping[str, JSON]) -> JSON:
        """Check the arguments and call the function. Raises ControlError."""
        self.check(arguments)
        return await self.function(hosted, **self._grouped(arguments))

    def _grouped(self, arguments: Mapping[str, JSON]) -> dict[str, Any]:
        """As the function takes them."""
        left = dict(arguments)
        for name, group in self.groups.items():
            given = [field.name for field in dataclasses.fields(group) if field.name in arguments]
            left[name] = group(**{field: left.pop(field) for field in given})
        return left

    def check(self, arguments: Mapping[str, JSON]) -> None:
        """Raises ControlError at the first argument that does not exist, is missing or has the wrong type."""
        for name, value in arguments.items():
            parameter = self.parameters.get(name)
            if parameter is None:
                raise ControlError(f"{self.name} has no argument `{name}`", did_you_mean(name, self.parameters))
            if not is_of_type(value, parameter.annotation):
                raise ControlError(
                    f"{self.name}: `{name}` is {_shown(value)}", f"give {type_name(parameter.annotation)}"
                )
        for parameter in self.parameters.values():
            if parameter.is_required and parameter.name not in arguments:
                raise ControlError(
                    f"{self.name}: `{parameter.name}` is missing", f"give {type_name(parameter.annotation)}"
                )

    def described(self) -> JSON:
        """Its entry in the list of methods."""
        return {
            "doc": self.doc,
            "arguments": {name: parameter.described() for name, parameter in self.parameters.items()},
        }


def method(function: Callable[..., Awaitable[JSON]]) -> Method:
    """The method that calls `function`, under its name."""
    parameters: dict[str, Parameter] = {}
    groups: dict[str, type[Any]] = {}
    for name, given in list(inspect.signature(function).parameters.items())[1:]:
        annotation = _evaluated(given.annotation, getattr(function, "__globals__", {}))
        if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
            groups[name] = annotation
            parameters |= {one.name: one for one in _fields(annotation)}
        else:
            parameters[name] = Parameter(name, annotation, given.default)
    doc = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    assert doc, f"{function.__name__} has no docstring"
    return Method(function.__name__, doc, parameters, function, groups)


def _fields(group: type[Any]) -> Iterator[Parameter]:
    """The arguments that a dataclass stands for."""
    scope = vars(sys.modules[group.__module__])
    for field in dataclasses.fields(group):
        default = REQUIRED if field.default is dataclasses.MISSING else field.default
        yield Parameter(field.name, _evaluated(field.type, scope), default)


def methods(*functions: Callable[..., Awaitable[JSON]]) -> tuple[Method, ...]:
    """For the `METHODS` of a module."""
    return tuple(method(function) for function in functions)


class Group(NamedTuple):
    """Methods that are loaded together, and their names."""

    load: Callable[[], tuple[Method, ...]]
    names: tuple[str, ...]

    @classmethod
    def of(cls, *loaded: Method) -> Group:
        """A group of methods that are there."""
        return cls(lambda: loaded, tuple(one.name for one in loaded))


class Registry:
    """Methods by name; a group is loaded with the first use of one of them."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self._groups: dict[str, Group] = {}
        self._methods: dict[str, Method] = {}
        for group in groups:
            for name in group.names:
                assert name not in self._groups, f"two methods named {name}"
                self._groups[name] = group

    def __getitem__(self, name: str) -> Method:
        if name not in self._groups:
            raise ControlError(f"there is no method `{name}`", did_you_mean(name, self._groups), status=404)
        if name not in self._methods:
            group = self._groups[name]
            self._methods |= zip(group.names, group.load(), strict=True)
        method = self._methods[name]
        assert method.name == name, f"{method.name} is listed as {name}"
        return method

    def described(self) -> JSON:
        """Every method with its arguments, their types and defaults, for `GET /v1`."""
        return {"methods": {name: self[name].described() for name in sorted(self._groups)}}


# --- types


def is_of_type(value: JSON, annotation: Any) -> bool:
    """Whether a JSON value is what the annotation allows."""
    if annotation is Any:
        return True
    if annotation is None or annotation is types.NoneType:
        return value is None
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return any(is_of_type(value, one) for one in arguments)
    if origin is Literal:
        return any(value == one and type(value) is type(one) for one in arguments)
    if origin is list:
        return isinstance(value, list) and all(is_of_type(one, arguments[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(is_of_type(one, arguments[1]) for one in value.values())
    if annotation in (int, float):
        allowed = (int, float) if annotation is float else int
        return isinstance(value, allowed) and not isinstance(value, bool)
    return isinstance(value, annotation)


def type_name(annotation: Any) -> str:
    """The annotation in words: `an integer or null`."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(type_name(one) for one in arguments)
    if origin is Literal:
        return " or ".join(f'"{one}"' for one in arguments)
    if origin is list:
        return "a list" if arguments[0] is Any else f"a list, each {type_name(arguments[0])}"
    if origin is dict:
        return "an object" if arguments[1] is Any else f"an object, each value {type_name(arguments[1])}"
    return _NAMES[annotation]


def _evaluated(annotation: Any, scope: Mapping[str, Any]) -> Any:
    return eval(annotation, {**vars(types), **scope}) if isinstance(annotation, str) else annotation


def _shown(value: JSON) -> str:
    import json

    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
