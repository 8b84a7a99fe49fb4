"""The check of a call's arguments, before anything is done: `@checked(topic=kinds.topic, partition=kinds.index)`.

Every public method of the test kit has it, with a kind for each of its parameters. A wrong call raises UsageError, with
the call in the cause and the right value in the fix: also one with an argument too many, too few, or misspelled.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, Final, NoReturn, TypeVar, cast

from kpybroker.testing.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
Kind = Callable[[Any], str | None]
"""What to give instead of this value; None where it is right."""
SHOWN_MAX: Final = 60
KINDS: Final = "__kinds__"
"""The attribute of a checked function that has the kinds of its parameters."""


def anything(value: Any) -> None:
    """The kind of what a client library checks, or the method itself."""


def checked(rest: Mapping[str, Kind] | None = None, /, **kinds: Kind) -> Callable[[F], F]:
    """Check each call of a function by the kinds of its parameters. `rest` has those of its `**` argument, if these
    are known.
    """

    def around(function: F) -> F:
        check = _Check(function, kinds, rest)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            check(args, kwargs)
            return function(*args, **kwargs)

        call.__dict__[KINDS] = {**kinds, **(rest or {})}
        return cast("F", call)

    return around


class _Check:
    """Of one function; its signature is read with the first call."""

    def __init__(
        self, function: Callable[..., Any], kinds: Mapping[str, Kind], rest: Mapping[str, Kind] | None
    ) -> None:
        self._function = function
        self._kinds = kinds
        self._rest = rest
        self._signature: inspect.Signature | None = None

    def __call__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        signature = self._signature
        if signature is None:
            signature = self._signature = _signature_of(self._function)
        name = _name_of(self._function, args)
        if self._rest is not None:
            self._check_names(name, signature, kwargs)
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            self._refuse(name, signature, args, kwargs, error)
        for parameter, value in given.items():
            kind = self._kinds.get(parameter)
            if kind is not None:
                _check_value(name, parameter, value, kind)
            elif self._rest is not None and parameter == _rest_name(signature):
                for option, one in value.items():
                    _check_value(name, option, one, self._rest[option])

    def _check_names(self, name: str, signature: inspect.Signature, kwargs: Mapping[str, Any]) -> None:
        assert self._rest is not None
        known = [*(self._rest), *_names(signature)]
        for option in kwargs:
            if option not in known:
                _refuse_name(name, option, known)

    def _refuse(
        self,
        name: str,
        signature: inspect.Signature,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        error: TypeError,
    ) -> NoReturn:
        known = _names(signature)
        for option in kwargs:
            if option not in known and _rest_name(signature) is None:
                _refuse_name(name, option, known)
        if self._rest is not None and len(args) > 1 and not known:
            raise UsageError(f"{name}(): {error}", f"give its arguments by name: {', '.join(self._rest)}") from None
        form = str(signature).replace("(self, ", "(", 1).replace("(self)", "()", 1)
        raise UsageError(f"{name}(): {error}", f"call it as {name}{form}") from None


def _signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Without annotations: it is shown to users."""
    own = inspect.signature(inspect.unwrap(function), follow_wrapped=False)
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in own.parameters.values()]
    return own.replace(parameters=plain, return_annotation=inspect.Signature.empty)


def _name_of(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """As a test writes it: a constructor has its class's name."""
    return type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__


def _names(signature: inspect.Signature) -> list[str]:
    """Of what may be given by name."""
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [one.name for one in signature.parameters.values() if one.kind in by_name and one.name != "self"]


def _rest_name(signature: inspect.Signature) -> str | None:
    """Of its `**` argument."""
    return next((one.name for one in signature.parameters.values() if one.kind is inspect.Parameter.VAR_KEYWORD), None)


def _refuse_name(name: str, option: str, known: Iterable[str]) -> NoReturn:
    raise UsageError(f"{name}() has no argument {option!r}", did_you_mean(option, known))


def _check_value(name: str, parameter: str, value: Any, kind: Kind) -> None:
    fix = kind(value)
    if fix is not None:
        raise UsageError(f"{name}({parameter}={shown(value)})", fix)


def shown(value: Any) -> str:
    """A value in a text, as Python writes it, cut where it is long."""
    try:
        text = repr(value)
    except Exception:  # of a value that a test has made
        text = f"a {type(value).__name__}"
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 3]}..."


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """The fix for a name that does not exist: the nearest that does, or all of them."""
    import difflib

    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=cutoff)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"give one of {', '.join(map(repr, names))}" if names else "leave it out"
