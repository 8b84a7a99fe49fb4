"""`printed`: the text of a tree, as Confluent's registry stores it; `normalized`: as it does with `normalize=true`.

Printed: no comments, an order of the kinds of declarations, names as they were written. Normalized: names of types are
full, fields, oneofs, constants, ranges, imports and options are sorted, and a name that means nothing is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from kpybroker.registry.errors import invalid_schema
from kpybroker.registry.schemas import java_json
from kpybroker.registry.schemas.proto import numbers
from kpybroker.registry.schemas.proto.elements import (
    SCALAR_NUMBERS,
    TAG_MAX,
    Constant,
    EnumType,
    Extend,
    Field,
    File,
    Group,
    Kind,
    MessageType,
    Method,
    OneOf,
    Option,
    Primitive,
    Range,
    Ranges,
    Service,
)
from kpybroker.registry.schemas.proto.names import Names

NUMERIC: Final = frozenset(SCALAR_NUMBERS) - {"bool", "string"}
SCALARS: Final = frozenset(SCALAR_NUMBERS)
NO_KEYS: Final = frozenset({"bytes", "double", "float"})
ESCAPES: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        "'": "\\'",
        '"': '\\"',
    }
)


def printed(file: File) -> str:
    """Raises RegistryError 42201 for a map whose key cannot be one."""
    return _Printer(None).file(file)


def normalized(file: File, names: Names) -> str:
    """Raises RegistryError 42201 also for a name that no type has."""
    return _Printer(names).file(file)


class _Printer:
    """With names, normalized."""

    def __init__(self, names: Names | None) -> None:
        self._names = names

    def file(self, file: File) -> str:
        parts: list[str] = []
        if file.syntax is not None and (self._names is None or file.syntax == "proto3"):
            parts.append(f'syntax = "{file.syntax}";\n')
        if file.package is not None:
            parts.append(f"package {file.package};\n")
        if file.imports or file.public_imports:
            parts.append("\n")
            parts += (f'import "{one}";\n' for one in self._imports(file.imports))
            parts += (f'import public "{one}";\n' for one in self._imports(file.public_imports))
        parts += _section(self._option(one) for one in self._options(file.options))
        parts += self._types(file.types)
        parts += _section(self._extend(one) for one in self._extends(file.extends))
        parts += _section(self._service(one) for one in file.services)
        return "".join(parts)

    def _imports(self, imports: Sequence[str]) -> Iterable[str]:
        return imports if self._names is None else sorted(set(imports), key=java_json.order)

    def _types(self, types: Sequence[MessageType | EnumType]) -> list[str]:
        """Messages first, then enums, each in their order: a message's place is in what producers write."""
        kept = [one for one in types if self._names is None or isinstance(one, EnumType) or not self._is_entry(one)]
        messages = [one for one in kept if isinstance(one, MessageType)]
        enums = [one for one in kept if isinstance(one, EnumType)]
        return _section([*map(self._message, messages), *map(self._enum, enums)])

    def _is_entry(self, message: MessageType) -> bool:
        """Of a map, which is written as the map."""
        assert self._names is not None, "only where it is normalized"
        full = self._names.type(message.name)
        return full is not None and self._names.types[full].map is not None

    def _message(self, message: MessageType) -> str:
        if self._names is None:
            return self._body_of_message(message)
        with self._names.within(message.name):
            return self._body_of_message(message)

    def _body_of_message(self, message: MessageType) -> str:
        return _block(
            f"message {message.name}",
            _section(f"reserved {self._ranges(one)};\n" for one in self._flat(message.reserved)),
            _section(self._option(one) for one in self._options(message.options)),
            _section(self._field(one) for one in self._by_number(message.fields)),
            self._oneofs(message.oneofs),
            _section(self._group(one) for one in self._by_number(message.groups)),
            _section(self._extensions(one) for one in self._flat(message.extensions)),
            _section(self._extend(one) for one in self._extends(message.extends)),
            self._types(message.types),
        )

    def _oneofs(self, oneofs: Sequence[OneOf]) -> list[str]:
        """Empty ones are left out where it is normalized, and leave their line."""
        if self._names is not None:
            kept = [one for one in oneofs if one.fields]
            written = [self._oneof(one) for one in sorted(kept, key=lambda one: min(f.number for f in one.fields))]
            return ["\n", *written] if oneofs else []
        return _section(map(self._oneof, oneofs))

    def _oneof(self, oneof: OneOf) -> str:
        return _block(
            f"oneof {oneof.name}",
            _section(self._option(one) for one in self._options(oneof.options)),
            _section(self._field(one) for one in self._by_number(oneof.fields)),
            _section(self._group(one) for one in self._by_number(oneof.groups)),
        )

    def _group(self, group: Group) -> str:
        label = f"{group.label} " if group.label else ""
        fields = _section(self._field(one) for one in self._by_number(group.fields))
        return _block(f"{label}group {group.name} = {group.number}", fields)

    def _enum(self, enum: EnumType) -> str:
        constants: Sequence[Constant] = enum.constants
        if self._names is not None:
            constants = sorted(constants, key=lambda one: (one.number, java_json.order(one.name)))
        rest = [self._option(one) for one in self._options(enum.options)]
        rest += (f"{one.name} = {one.number}{self._behind(one.options)};\n" for one in constants)
        if not enum.reserved and (enum.options or enum.constants):
            rest.insert(0, "\n")
        reserved = _section(f"reserved {self._ranges(one)};\n" for one in self._flat(enum.reserved))
        return _block(f"enum {enum.name}", reserved, rest)

    def _extends(self, extends: Sequence[Extend]) -> Iterable[Extend]:
        """One for each message that is extended, where it is normalized."""
        if self._names is None:
            return extends
        found: dict[str, Extend] = {}
        for one in extends:
            if one.fields:
                name = self._resolved(one.name)
                found.setdefault(name, Extend(name)).fields.extend(one.fields)
        return found.values()

    def _extend(self, extend: Extend) -> str:
        return _block(f"extend {extend.name}", _section(self._field(one) for one in self._by_number(extend.fields)))

    def _service(self, service: Service) -> str:
        return _block(
            f"service {service.name}",
            _section(self._option(one) for one in self._options(service.options)),
            _section(map(self._method, service.methods)),
        )

    def _method(self, method: Method) -> str:
        request = ("stream " if method.is_request_stream else "") + self._message_name(method.request)
        response = ("stream " if method.is_response_stream else "") + self._message_name(method.response)
        head = f"rpc {method.name} ({request}) returns ({response})"
        options = self._options(method.options)
        if not options:
            return f"{head};\n"
        return f"{head} {{\n{''.join(_indented(self._option(one)) for one in options)}}};\n"

    def _message_name(self, name: str) -> str:
        return name if self._names is None else self._resolved(name)

    def _resolved(self, name: str) -> str:
        assert self._names is not None, "only where it is normalized"
        found = self._names.type(name)
        if found is None:
            raise invalid_schema(f"no type has the name {name[:200]}")
        return f".{found}"

    def _by_number(self, fields: Sequence[Any]) -> Sequence[Any]:
        return fields if self._names is None else sorted(fields, key=lambda one: one.number)

    def _field(self, field: Field) -> str:
        kind, label = field.type, field.label
        _check_map(kind)
        if self._names is not None:
            kind = self._full_type(kind)
            label = "" if kind.startswith("map<") else label
        options = list(field.options)
        if field.default is not None:
            options.append(Option("default", _kind_of(kind), field.default))
        if field.json_name is not None:
            options.append(Option("json_name", Kind.STRING, field.json_name))
        shown = f"{label} " if label else ""
        return f"{shown}{kind} {field.name} = {field.number}{self._behind(self._options(options))};\n"

    def _full_type(self, kind: str) -> str:
        assert self._names is not None, "only where it is normalized"
        if kind in SCALARS:
            return kind
        if not kind.startswith("map<"):
            full = self._resolved(kind)
            of_entry = self._names.types[full[1:]].map
            if of_entry is None:
                return full
            kind = of_entry
        key, value = _parts_of_map(kind)
        full_value = self._names.type(value)
        return kind if full_value is None else f"map<{key}, .{full_value}>"

    def _flat(self, several: Sequence[Ranges]) -> Iterable[Ranges]:
        """One statement for each range, sorted, where it is normalized."""
        if self._names is None:
            return several
        flat = [Ranges((value,), one.options) for one in several for value in one.values]
        return sorted(flat, key=lambda one: _order_of_range(one.values[0]))

    def _ranges(self, ranges: Ranges) -> str:
        return ", ".join(map(self._range, ranges.values))

    def _range(self, value: Range) -> str:
        if isinstance(value, str):
            return f'"{value}"'
        if isinstance(value, int):
            return str(value)
        first, last = value
        if self._names is not None and first == last:
            return str(first)
        return f"{first} to {last if last < TAG_MAX else 'max'}"

    def _extensions(self, ranges: Ranges) -> str:
        return f"extensions {self._ranges(ranges)}{self._behind(self._options(ranges.options))};\n"

    def _option(self, option: Option) -> str:
        return f"option {self._assignment(option)};\n"

    def _behind(self, options: Sequence[Option]) -> str:
        """In brackets behind a field or a constant."""
        return f" {self._list(options)}" if options else ""

    def _options(self, options: Sequence[Option]) -> Sequence[Option]:
        """Sorted where it is normalized, with the full names of extensions, whose parts are put together."""
        if self._names is None or not options:
            return options
        found = sorted(map(self._full_option, options), key=lambda one: java_json.order(one.name))
        kept: list[Option] = []
        for name, group in groupby(found, key=lambda one: one.name):
            several = list(group)
            if self._names.extensions.get(name.removeprefix(".")) is False:
                several = [_merged(several)]
            kept += several
        return kept

    def _full_option(self, option: Option) -> Option:
        assert self._names is not None, "only where it is normalized"
        full = self._names.extension(option.name) if option.is_custom else None
        return option if full is None else _as_map(option._replace(name=full))

    def _assignment(self, option: Option) -> str:
        name = f"({option.name})" if option.is_custom else option.name
        match option.kind:
            case Kind.STRING:
                return f'{name} = "{option.value.translate(ESCAPES)}"'
            case Kind.NUMBER:
                return f"{name} = {self._number(option.value)}"
            case Kind.OPTION:
                return f"{name}.{self._assignment(option.value)}"
            case Kind.MAP:
                return f"{name} = {{\n{self._map(option.value)}}}"
            case Kind.LIST:
                return f"{name} = {self._list(option.value)}"
            case _:
                return f"{name} = {option.value}"

    def _number(self, text: str) -> str:
        return text if self._names is None else numbers.short(text)

    def _map(self, values: dict[str, Any]) -> str:
        if self._names is not None:
            full: dict[str, Any] = {}
            for key, value in values.items():
                if value != []:
                    full.setdefault(self._full_key(key), value)
            values = {key: full[key] for key in sorted(full, key=java_json.order)}
        lines = [f"{key}: {self._value(value)}" for key, value in values.items()]
        return "".join(_indented(f"{line}{',' if at < len(lines) else ''}") for at, line in enumerate(lines, 1))

    def _full_key(self, key: str) -> str:
        assert self._names is not None, "only where it is normalized"
        if not (key.startswith("[") and key.endswith("]")):
            return key
        full = self._names.extension(key[1:-1])
        return key if full is None else f"[{full}]"

    def _value(self, value: Any) -> str:
        match value:
            case str():
                return f'"{value.translate(ESCAPES)}"'
            case dict():
                return f"{{\n{self._map(value)}}}"
            case Primitive():
                return self._number(value.value) if value.kind is Kind.NUMBER else value.value
            case Option():
                return self._assignment(value)
            case _ if self._names is not None and len(value) == 1:
                return self._value(value[0])
            case _:
                return f"[\n{self._lines(value)}]"

    def _list(self, values: Sequence[Any]) -> str:
        if len(values) == 1:
            return f"[{self._value(values[0])}]"
        return f"[\n{self._lines(values)}]"

    def _lines(self, values: Sequence[Any]) -> str:
        return "".join(
            _indented(f"{self._value(one)}{',' if at < len(values) else ''}") for at, one in enumerate(values, 1)
        )


def _section(parts: Iterable[str]) -> list[str]:
    """With a line in front, if there are any."""
    found = list(parts)
    return ["\n", *found] if found else []


def _block(head: str, *sections: Sequence[str]) -> str:
    """Sections between braces: each begins with the end of the line before, or is empty."""
    parts = [f"{head} {{"]
    for section in sections:
        parts += (part if part == "\n" else _indented(part) for part in section)
    return "".join([*parts, "}\n"])


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.rstrip("\n").split("\n"))


def _check_map(kind: str) -> None:
    while kind.startswith("map<"):
        key, kind = _parts_of_map(kind)
        if key not in SCALARS or key in NO_KEYS:
            raise invalid_schema(f"{key[:100]} cannot be the type of a map's key")


def _parts_of_map(kind: str) -> tuple[str, str]:
    key, _, value = kind[len("map<") : -1].partition(",")
    return key.strip(), value.strip()


def _kind_of(kind: str) -> Kind:
    """How a default of the type is written."""
    short = kind.rpartition(".")[2]
    if short in NUMERIC:
        return Kind.NUMBER
    return {"bool": Kind.BOOLEAN, "string": Kind.STRING}.get(short, Kind.ENUM)


def _order_of_range(value: Range) -> tuple[int, str]:
    if isinstance(value, tuple):
        return value[0], f"{value[0]}..{value[1]}"
    return (value, str(value)) if isinstance(value, int) else (2**31 - 1, value)


def _as_map(option: Option) -> Option:
    """`(a).b.c = 1` as `(a) = { b: { c: 1 } }`."""
    if option.kind is not Kind.OPTION:
        return option
    return option._replace(kind=Kind.MAP, value=_map_of(option.value))


def _map_of(option: Option) -> dict[str, Any]:
    if option.kind is Kind.OPTION:
        return {option.name: _map_of(option.value)}
    is_bare = option.kind in (Kind.BOOLEAN, Kind.ENUM, Kind.NUMBER)
    return {option.name: Primitive(option.kind, option.value) if is_bare else option.value}


def _merged(options: Sequence[Option]) -> Option:
    """Of an extension that is not repeated: maps are put together, of other values the last one holds."""
    found = [options[0]]
    for one in map(_as_map, options[1:]):
        if found[0].kind is not Kind.MAP or one.kind is not Kind.MAP:
            found.clear()
        found.append(one)
    if len(found) == 1:
        return found[0]
    values: dict[str, list[Any]] = {}
    for one in found:
        for key, value in one.value.items():
            values.setdefault(key, []).append(value)
    return found[-1]._replace(value={key: _joined(several) for key, several in values.items()})


def _joined(several: Sequence[Any]) -> Any:
    """Several values of one key: a list without those that are twice."""
    if len(several) == 1:
        return several[0]
    flat = [part for value in several for part in (value if isinstance(value, list) else [value])]
    return list({repr(part): part for part in flat}.values())
