"""Messages made with a Random: for property tests (hypothesis passes its own), Java and the fuzzer's seeds.

Only fields that the version carries are set, so that a round trip must give back an equal message.
"""

from __future__ import annotations

import importlib
import pkgutil
from random import Random
from typing import Any

from kpybroker.wire import messages
from kpybroker.wire.api import API_INFO
from kpybroker.wire.schema import Field, Message, default_value, struct_fields

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_UNSIGNED_BITS = {"uint16": 16, "uint32": 32}
_ALPHABET = "abcxyzABC019-_. äß€中𝄞"


def api_message_classes() -> list[type[Message]]:
    """Every request and response class, by API key."""
    return [cls for info in API_INFO.values() for cls in (info.request_class(), info.response_class())]


def message_classes() -> list[type[Message]]:
    """Every class above, and the records."""
    apis = api_message_classes()
    names = sorted(module.name for module in pkgutil.iter_modules(messages.__path__))
    modules = [importlib.import_module(f"{messages.__name__}.{name}") for name in names if name != "keys"]
    found = [value for module in modules for value in vars(module).values() if _is_message(value)]
    return apis + [cls for cls in found if cls not in apis]


def _is_message(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Message) and value is not Message


def random_message(message_class: type[Message], version: int, random: Random, fullness: float = 0.7) -> Any:
    """A message of that version; `fullness` is the share of fields that leave their default."""
    return _Maker(message_class, version, random, fullness).struct(message_class)


class _Maker:
    def __init__(self, message_class: type[Message], version: int, random: Random, fullness: float) -> None:
        self.message_class = message_class
        self.version = version
        self.random = random
        self.fullness = fullness

    def struct(self, struct_class: type[Message]) -> Message:
        result = struct_class()
        for field in struct_fields(self.message_class, struct_class):
            if field.present(self.version):
                setattr(result, field.name, self._value(field))
        if self.version >= self.message_class.FLEXIBLE_FROM and self.random.random() < 0.1:
            result.unknown_tagged_fields = self._unknown_tags()
        return result

    def _value(self, field: Field) -> Any:
        if self.random.random() >= self.fullness:
            value = default_value(field)
            return self._not_null(field) if value is None and not self._may_be_none(field) else value
        if field.is_nullable(self.version) and self.random.random() < 0.2:
            return None
        if field.array:
            return [self._single(field) for _ in range(self._length())]
        value = self._single(field)
        # a tagged struct of defaults is not written, and so is read as None, unless null is another value
        tagged_struct = field.struct is not None and field.is_tagged(self.version) and field.nullable is None
        return None if tagged_struct and value == field.struct() else value  # type: ignore[misc]

    def _may_be_none(self, field: Field) -> bool:
        return field.is_nullable(self.version) or (field.struct is not None and field.is_tagged(self.version))

    def _not_null(self, field: Field) -> Any:
        return [] if field.array else self._single(field)

    def _length(self) -> int:
        if self.random.random() < 0.03:
            return self.random.choice([17, 126, 127, 128, 130]) if self.message_class.VERSIONS else 0
        return self.random.choice([0, 1, 1, 2, 3])

    def _single(self, field: Field) -> Any:
        if field.struct is not None:
            return self.struct(field.struct)
        return self._primitive(field.type_name)

    def _primitive(self, type_name: str) -> Any:
        random = self.random
        if type_name in _BITS:
            bits = _BITS[type_name] - 1
            return random.choice([0, 1, -1, (1 << bits) - 1, -(1 << bits), random.getrandbits(bits)])
        if type_name in _UNSIGNED_BITS:
            return random.getrandbits(_UNSIGNED_BITS[type_name])
        if type_name == "bool":
            return random.random() < 0.5
        if type_name == "float64":
            return random.choice([0.0, -1.5, 1e300, float(random.getrandbits(20))])
        if type_name == "uuid":
            return bytes(random.getrandbits(8) for _ in range(16))
        size = random.choice([0, 1, 5, 20]) if random.random() < 0.95 else random.choice([126, 127, 128, 300])
        if type_name == "string":
            return "".join(random.choice(_ALPHABET) for _ in range(size))
        return bytes(random.getrandbits(8) for _ in range(size))

    def _unknown_tags(self) -> tuple[tuple[int, bytes], ...]:
        tags = sorted({100 + self.random.getrandbits(10) for _ in range(self.random.choice([1, 1, 2, 3]))})
        return tuple((tag, bytes(self.random.getrandbits(8) for _ in range(tag % 5))) for tag in tags)
