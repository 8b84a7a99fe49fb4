"""Configuration values: parsing, writing and validation, as in Kafka's ``ConfigDef``.

A value is trimmed and parsed by its type. Writing is the reverse: DescribeConfigs shows the parsed value, so `0.50`
becomes `0.5`. The error texts are Kafka's, because clients see them.

The rules of a key are plain tuples (`keys.definition`), so that importing 300 keys is cheap; this module interprets
them. It knows no key and reads no file.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

Value = Any
"""bool, int, float, str, tuple[str, ...] or None, as the key's type says."""

BOOLEAN: Final = "BOOLEAN"
STRING: Final = "STRING"
INT: Final = "INT"
SHORT: Final = "SHORT"
LONG: Final = "LONG"
DOUBLE: Final = "DOUBLE"
LIST: Final = "LIST"
CLASS: Final = "CLASS"
PASSWORD: Final = "PASSWORD"

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1

_INTEGER_BITS: Final = {INT: 32, SHORT: 16, LONG: 64}
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_FLOAT: Final = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)")
_COMMA: Final = re.compile(r"\s*,\s*")


class ConfigError(ValueError):
    """A value that a key does not accept. `str()` is the text of Kafka's `ConfigException`."""

    def __init__(self, name: str, value: object, reason: str = "") -> None:
        self.name = name
        self.value = value
        self.reason = reason
        super().__init__(f"Invalid value {_shown(value)} for configuration {name}" + (f": {reason}" if reason else ""))


class ConfigTextError(ConfigError):
    """An error with a text of its own; `name` is the key to change first."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(name, None, sentence)
        self.args = (sentence,)


class ConfigConflict(ConfigTextError):
    """Values that are valid one by one but not together."""


def _shown(value: object) -> str:
    """A value as Java's string concatenation shows it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(str(item) for item in value) + "]"
    return java_double(value) if isinstance(value, float) else str(value)


# --- parsing


def _parse_boolean(name: str, text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ConfigError(name, text, "Expected value to be either true or false")
    return lowered == "true"


def _parse_integer(name: str, text: str, type_name: str) -> int:
    bits = _INTEGER_BITS[type_name]
    trimmed = text.strip()
    number = int(trimmed) if _INTEGER.fullmatch(trimmed) and len(trimmed) <= 40 else None
    if number is None or not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ConfigError(name, text, f"Not a number of type {type_name}")
    return number


def _parse_double(name: str, text: str) -> float:
    trimmed = text.strip()
    if not _FLOAT.fullmatch(trimmed):
        raise ConfigError(name, text, "Not a number of type DOUBLE")
    return float(trimmed if trimmed.endswith(("y", "N")) else trimmed.rstrip("fFdD"))


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(_COMMA.split(text)) if text else ()


def parse_value(name: str, type_name: str, text: str | None) -> Value:
    """The typed value of `text`, None for None (Kafka's null). Raises `ConfigError` for text of another type."""
    if text is None:
        return None
    if type_name in _INTEGER_BITS:
        return _parse_integer(name, text, type_name)
    if type_name == BOOLEAN:
        return _parse_boolean(name, text)
    if type_name == DOUBLE:
        return _parse_double(name, text)
    trimmed = text.strip()
    if type_name == LIST:
        return _parse_list(trimmed)
    return trimmed


# --- writing


def java_double(number: float) -> str:
    """Java's ``Double.toString``: decimal from 10^-3 to 10^7, otherwise one digit before the point and an `E`."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "-0.0" if math.copysign(1, number) < 0 else "0.0"
    if 1e-3 <= abs(number) < 1e7:
        plain = repr(number)
        return plain if "e" not in plain else f"{number:f}"
    mantissa, _, exponent = f"{number!r}".lower().partition("e")
    if not exponent:  # Python writes no exponent up to 10^16
        mantissa, _, exponent = f"{number:.16e}".partition("e")
        digits = next(d for d in range(1, 18) if float(f"{number:.{d}e}") == number)
        mantissa, _, exponent = f"{number:.{digits}e}".partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"


def value_text(value: Value, type_name: str) -> str | None:
    """A parsed value as text, as ``ConfigDef.convertToString`` writes it; None for None."""
    if value is None:
        return None
    if type_name == BOOLEAN:
        return "true" if value else "false"
    if type_name == LIST:
        return ",".join(value)
    return java_double(value) if type_name == DOUBLE else str(value)


# --- validators
#
# A validator is a tuple: its name in `_CHECKS` and its arguments.

Validator = tuple[Any, ...]


def at_least(minimum: float) -> Validator:
    """A number that is not below `minimum` (Kafka's ``Range.atLeast``)."""
    return ("range", minimum, None)


def between(minimum: float, maximum: float) -> Validator:
    """A number in a closed range (Kafka's ``Range.between``)."""
    return ("range", minimum, maximum)


def one_of(*choices: str) -> Validator:
    """A string that equals one of `choices` (Kafka's ``ValidString``)."""
    return ("one_of", *choices)


def any_case_one_of(*choices: str) -> Validator:
    """As `one_of`, ignoring case; `choices` are in upper case (Kafka's ``CaseInsensitiveValidString``)."""
    return ("any_case_one_of", *choices)


def list_of(*choices: str) -> Validator:
    """A list whose items are all in `choices` (Kafka's ``ValidList``)."""
    return ("list_of", *choices)


def distinct(*choices: str, empty: bool = True) -> Validator:
    """A list without empty items (Kafka 4's ``ValidList``); of `choices`, if there are any.

    `without_repetitions` removes what is there twice.
    """
    return ("distinct", empty, *choices)


def without_repetitions(value: Value, validator: Validator) -> Value:
    """A list as Kafka 4 takes it, if the rule of the key is `distinct`; any other value as it is."""
    return tuple(dict.fromkeys(value)) if validator[0] == "distinct" and isinstance(value, tuple) else value


NON_EMPTY: Final[Validator] = ("non_empty",)
NON_NULL: Final[Validator] = ("non_null",)
POSITIVE_OR_MINUS_ONE: Final[Validator] = ("positive_or_minus_one",)
GZIP_LEVEL: Final[Validator] = ("gzip_level",)
METADATA_VERSION: Final[Validator] = ("metadata_version",)
THROTTLED_REPLICAS: Final[Validator] = ("throttled_replicas",)
CLUSTER_ID: Final[Validator] = ("cluster_id",)
REGEX: Final[Validator] = ("regex",)
"""A regular expression that means the same in Java and in Python."""
OFFSET_RESET: Final[Validator] = ("offset_reset",)
"""Where a share group begins (Kafka's ``ShareGroupAutoOffsetResetStrategy``)."""
ANYTHING: Final[Validator] = ("anything",)


def _number(bound: float, like: Value) -> str:
    return _shown(float(bound)) if isinstance(like, float) and not float(bound).is_integer() else str(int(bound))


def _check_range(name: str, value: Value, minimum: float, maximum: float | None) -> None:
    if value is None:
        raise ConfigError(name, None, "Value must be non-null")
    if value < minimum:
        raise ConfigError(name, value, f"Value must be at least {_number(minimum, value)}")
    if maximum is not None and value > maximum:
        raise ConfigError(name, value, f"Value must be no more than {_number(maximum, value)}")


def _check_one_of(name: str, value: Value, *choices: str) -> None:
    if value not in choices:
        raise ConfigError(name, value, "String must be one of: " + ", ".join(choices))


def _check_any_case_one_of(name: str, value: Value, *choices: str) -> None:
    if value is None or value.upper() not in choices:
        raise ConfigError(name, value, "String must be one of (case insensitive): " + ", ".join(choices))


def _check_list_of(name: str, value: Value, *choices: str) -> None:
    for item in value or ():
        _check_one_of(name, item, *choices)


def _check_non_empty(name: str, value: Value) -> None:
    if value == "":
        raise ConfigError(name, value, "String must be non-empty")


def _check_non_null(name: str, value: Value) -> None:
    if value is None:
        raise ConfigError(name, None, "entry must be non null")


def _check_positive_or_minus_one(name: str, value: Value) -> None:
    if value != -1 and value < 1:
        raise ConfigError(name, value, "Value can be -1 or greater than 0")


def _check_gzip_level(name: str, value: Value) -> None:
    if value != -1 and not 1 <= value <= 9:
        raise ConfigError(name, value, "Value must be between 1 and 9 or equal to -1")


def _check_metadata_version(name: str, value: Value) -> None:
    from kpybroker.config.metadata_versions import metadata_version

    if metadata_version(value) is None:
        raise ConfigError(name, value, f"Version `{value}` is not a valid version")


_CLUSTER_ID: Final = re.compile(r"[0-9A-Za-z_-]{1,64}")


def _check_cluster_id(name: str, value: Value) -> None:
    if value is not None and not _CLUSTER_ID.fullmatch(value):
        raise ConfigError(name, value, "An id has 1 to 64 letters, digits, `_` and `-`")


_THROTTLED: Final = re.compile(r"[0-9]+:[0-9]+")


def _check_throttled_replicas(name: str, value: Value) -> None:
    if value is None:
        raise ConfigError(name, None, "Config value must be a list")  # pragma: no cover - a list key is never null
    if value != ("*",) and not all(_THROTTLED.fullmatch(item.strip()) for item in value):
        raise ConfigError(
            name,
            value,
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
        )


def _check_distinct(name: str, value: Value, empty: bool, *choices: str) -> None:
    items = value or ()
    if not items and not empty:
        among = f"[{', '.join(choices)}]" if choices else "any non-empty value"
        raise ConfigTextError(name, f"Configuration '{name}' must not be empty. Valid values include: {among}")
    if "" in items:
        raise ConfigTextError(name, f"Configuration '{name}' values must not be empty.")
    for item in items if choices else ():
        _check_one_of(name, item, *choices)


def _check_regex(name: str, value: Value) -> None:
    if value is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)  # of what only Java takes: classes in classes
        try:
            re.compile(value)
        except (re.error, FutureWarning, OverflowError, RecursionError) as error:
            raise ConfigError(name, value, f"not a regular expression here: {error}") from None


_DURATION: Final = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]+)D)?(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)
_UNITS_S: Final = (86_400, 3_600, 60, 1)
_LONG_MAX: Final = 2**63 - 1


def duration_ms(text: str) -> int:
    """Milliseconds of a duration in ISO 8601 (``PnDTnHnMn.nS``), as Java's ``Duration.parse`` takes it.

    Its parts may have signs, and its letters may be small. Raises ValueError for other texts, and for durations below 0
    or with seconds that a Java ``long`` does not hold.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no duration")
    sign, days, time, hours, minutes, seconds, fraction = match.groups()
    parts = (days, hours, minutes, seconds)
    if all(part is None for part in parts) or (time is not None and len(time) == 1):
        raise ValueError(f"{text!r} has no part of a duration")
    each = [int(part) * unit for part, unit in zip(parts, _UNITS_S, strict=True) if part]
    if any(abs(one) > _LONG_MAX for one in (*each, sum(each))):
        raise ValueError(f"{text!r} is too long")
    total_ns = sum(each) * 1_000_000_000
    if fraction:
        below = int(fraction.ljust(9, "0"))
        total_ns += -below if seconds.startswith("-") else below
    total_ns = -total_ns if sign == "-" else total_ns
    if total_ns < 0:
        raise ValueError(f"{text!r} is below 0")
    return total_ns // 1_000_000


def _check_offset_reset(name: str, value: Value) -> None:
    strategy, _, duration = (value or "").partition(":")
    if value in ("earliest", "latest"):
        return
    with suppress(ValueError):
        if strategy == "by_duration":
            duration_ms(duration)
            return
    raise ConfigError(
        name,
        value,
        f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', 'latest' or of the "
        "format 'by_duration:<PnDTnHnMn.nS>'.",
    )


def _check_nothing(name: str, value: Value) -> None:
    """Kafka declares no check for this key."""


_CHECKS: Final[dict[str, Callable[..., None]]] = {
    "range": _check_range,
    "one_of": _check_one_of,
    "any_case_one_of": _check_any_case_one_of,
    "list_of": _check_list_of,
    "non_empty": _check_non_empty,
    "non_null": _check_non_null,
    "positive_or_minus_one": _check_positive_or_minus_one,
    "gzip_level": _check_gzip_level,
    "metadata_version": _check_metadata_version,
    "distinct": _check_distinct,
    "cluster_id": _check_cluster_id,
    "throttled_replicas": _check_throttled_replicas,
    "regex": _check_regex,
    "offset_reset": _check_offset_reset,
    "anything": _check_nothing,
}


def check_value(name: str, value: Value, validator: Validator) -> None:
    """Raise `ConfigError` if `value` breaks the rule of the key."""
    _CHECKS[validator[0]](name, value, *validator[1:])
