"""Reads our protocol spec notation (see README.md) into plain values.

Rules: one file holds one API (`api KEY Name`, sections `request` and `response`) or one record (`record Name`, section
`fields`). Indentation is two spaces a level. A field without a version range has that of the enclosing field. This
module knows nothing about Python code or about bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOREVER = 32767
"""The upper end of a range written `3+`."""

PRIMITIVES = frozenset(
    {"bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64"} | {"uuid", "string", "bytes", "records"}
)
NULLABLE_PRIMITIVES = frozenset({"string", "bytes", "records"})

Range = tuple[int, int]
Default = None | bool | int | float | str


class SpecError(ValueError):
    """A spec file that does not follow the notation; the message names file and line."""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field. `default` is the value of a primitive; `default_null`: the field is null by default."""

    name: str
    kafka_name: str
    type: str
    array: bool
    versions: Range
    nullable: Range | None
    tag: int | None
    tagged: Range | None
    map_key: bool
    ignorable: bool
    default: Default
    default_null: bool
    doc: str

    @property
    def is_struct(self) -> bool:
        """Whether its type is a struct and no primitive."""
        return self.type not in PRIMITIVES


@dataclass(frozen=True, slots=True)
class StructSpec:
    """A struct: its name, the versions of the field that defines it, and its fields."""

    name: str
    versions: Range
    fields: tuple[FieldSpec, ...]


@dataclass(frozen=True, slots=True)
class MessageSpec:
    """A request, a response or a record: its own fields, and every struct below it by name."""

    name: str
    kind: str
    versions: Range
    flexible_from: int
    fields: tuple[FieldSpec, ...]
    structs: tuple[StructSpec, ...]


@dataclass(frozen=True, slots=True)
class SpecFile:
    """The contents of one file. `api_key` is None for records."""

    path: Path
    doc: str
    api_key: int | None
    name: str
    versions: Range
    flexible_from: int
    messages: tuple[MessageSpec, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    depth: int
    text: str
    doc: str


def snake_case(camel: str) -> str:
    """`ThrottleTimeMs` -> `throttle_time_ms`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", camel).lower()


def camel_case(snake: str) -> str:
    """`throttle_time_ms` -> `ThrottleTimeMs`."""
    return "".join(part[:1].upper() + part[1:] for part in snake.split("_"))


def lower_camel_case(snake: str) -> str:
    """`throttle_time_ms` -> `throttleTimeMs`."""
    camel = camel_case(snake)
    return camel[:1].lower() + camel[1:]


def parse_range(text: str) -> Range:
    """The inclusive range of `3+`, `0-7` or `2`; ValueError for anything else."""
    if not (match := re.fullmatch(r"(\d+)(?:(\+)|-(\d+))?", text)):
        raise ValueError(f"not a version range: {text!r}")
    low = int(match[1])
    high = FOREVER if match[2] else int(match[3] or low)
    if high < low:
        raise ValueError(f"empty version range: {text!r}")
    return low, high


def intersect(a: Range, b: Range) -> Range | None:
    """The versions in both ranges, None if there are none."""
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low <= high else None


def read_specs(folder: Path) -> list[SpecFile]:
    """Every `*.spec` file of the folder, APIs by key first, then records by name."""
    specs = [read_spec(path) for path in sorted(folder.glob("*.spec"))]
    return sorted(specs, key=lambda spec: (spec.api_key is None, spec.api_key or 0, spec.name))


def read_spec(path: Path) -> SpecFile:
    """Parses one spec file; raises SpecError, which names the line."""
    return _Parser(path).parse()


_FIELD = re.compile(
    r"""(?P<name>[a-z][a-z0-9_]*):\s+
        (?P<type>\[?[A-Za-z0-9]+\]?)(?P<null>\?(?P<null_versions>[\d+-]+)?)?
        (?:\s+(?P<versions>\d+(?:\+|-\d+)?))?
        (?P<key>\s+key)?
        (?P<ignorable>\s+ignorable)?
        (?:\s+tag\s+(?P<tag>\d+)(?:\s+from\s+(?P<tagged>\d+))?)?
        (?:\s+as\s+(?P<as>\w+))?
        (?:\s+=\s+(?P<default>\S+))?""",
    re.VERBOSE,
)


class _Parser:
    """Recursive descent over indented lines; structs are collected in their order of appearance."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = list(_lines(path))
        self.at = 0
        self.structs: dict[str, StructSpec] = {}
        self.lower_camel = False

    def parse(self) -> SpecFile:
        doc = self._opening_doc()
        words = self._next().text.split()
        versions, flexible_from = self._versions_line()
        if self._peek_text() == "names lowerCamel":
            self._next()
            self.lower_camel = True
        if len(words) == 3 and words[0] == "api":
            name, api_key = words[2], int(words[1])
            sections = [("request", name + "Request"), ("response", name + "Response")]
        elif len(words) == 2 and words[0] == "record":
            name, api_key = words[1], None
            sections = [("fields", name)]
        else:
            raise self._error("expected `api KEY Name` or `record Name`")
        messages = tuple(self._section(title, cls, versions, flexible_from) for title, cls in sections)
        if self.at != len(self.lines):
            raise self._error("unexpected line")
        return SpecFile(self.path, doc, api_key, name, versions, flexible_from, messages)

    def _opening_doc(self) -> str:
        docs = []
        while self.at < len(self.lines) and not self.lines[self.at].text:
            docs.append(self.lines[self.at].doc)
            self.at += 1
        return " ".join(docs)

    def _versions_line(self) -> tuple[Range, int]:
        match = re.fullmatch(r"versions (\S+), (?:flexible (\d+)\+|not flexible)", self._next().text)
        if not match:
            raise self._error("expected `versions LOW-HIGH, flexible N+` or `..., not flexible`", back=1)
        return parse_range(match[1]), int(match[2]) if match[2] else FOREVER

    def _section(self, title: str, class_name: str, versions: Range, flexible_from: int) -> MessageSpec:
        if self._next().text != title:
            raise self._error(f"expected section `{title}`", back=1)
        self.structs = {}
        fields = self._fields(1, (0, FOREVER))
        while self._peek_text().startswith("struct "):
            name = self._next().text.split()[1]
            self._add_struct(StructSpec(name, (0, FOREVER), self._fields(2, (0, FOREVER))))
        self._check_references(fields)
        structs = tuple(self.structs.values())
        return MessageSpec(class_name, title, versions, flexible_from, fields, structs)

    def _fields(self, depth: int, enclosing: Range) -> tuple[FieldSpec, ...]:
        fields = []
        while self.at < len(self.lines) and self.lines[self.at].depth == depth:
            if self.lines[self.at].text.startswith("struct "):
                break
            fields.append(self._field(depth, enclosing))
        if len({field.name for field in fields}) != len(fields):
            raise self._error("a field name is used twice", back=1)
        return tuple(fields)

    def _field(self, depth: int, enclosing: Range) -> FieldSpec:
        line = self._next()
        if not (match := _FIELD.fullmatch(line.text)):
            raise self._error("not a field", back=1)
        versions = parse_range(match["versions"]) if match["versions"] else enclosing
        type_name, array = match["type"].strip("[]"), match["type"].startswith("[")
        nullable = None
        if match["null"]:
            nullable = parse_range(match["null_versions"]) if match["null_versions"] else versions
        tagged = None
        if match["tag"]:
            tagged = (int(match["tagged"]), FOREVER) if match["tagged"] else versions
        mechanical = lower_camel_case if self.lower_camel else camel_case
        field = FieldSpec(
            name=match["name"],
            kafka_name=match["as"] or mechanical(match["name"]),
            type=type_name,
            array=array,
            versions=versions,
            nullable=nullable,
            tag=int(match["tag"]) if match["tag"] else None,
            tagged=tagged,
            map_key=bool(match["key"]),
            ignorable=bool(match["ignorable"]),
            default=self._default(type_name, array, match["default"]),
            default_null=match["default"] == "null",
            doc=line.doc,
        )
        self._check_field(field)
        children = self._fields(depth + 1, versions)
        if children:
            self._add_struct(StructSpec(type_name, versions, children))
        return field

    def _default(self, type_name: str, array: bool, text: str | None) -> Default:
        if text == "null" or array or type_name not in PRIMITIVES:
            if text not in (None, "null"):
                raise self._error("an array or struct can only start as null", back=1)
            return None
        if type_name == "bool":
            return text == "true"
        if type_name == "string":
            return (text or "").strip('"')
        if type_name == "float64":
            return float(text or 0)
        if type_name in ("uuid", "bytes", "records"):
            return None
        return int(text or "0", 0)

    def _check_field(self, field: FieldSpec) -> None:
        if field.nullable and not (field.array or field.is_struct or field.type in NULLABLE_PRIMITIVES):
            raise self._error(f"{field.type} cannot be null", back=1)
        if field.default_null and not field.nullable:
            raise self._error("starts as null but is never nullable", back=1)

    def _add_struct(self, struct: StructSpec) -> None:
        if struct.name in self.structs:
            raise self._error(f"struct {struct.name} is defined twice", back=1)
        self.structs[struct.name] = struct

    def _check_references(self, fields: tuple[FieldSpec, ...]) -> None:
        for group in (fields, *(struct.fields for struct in self.structs.values())):
            for field in group:
                if field.is_struct and field.type not in self.structs:
                    raise SpecError(f"{self.path}: {field.name} names an unknown type {field.type}")

    def _next(self) -> _Line:
        if self.at >= len(self.lines):
            raise SpecError(f"{self.path}: unexpected end of file")
        self.at += 1
        return self.lines[self.at - 1]

    def _peek_text(self) -> str:
        return self.lines[self.at].text if self.at < len(self.lines) else ""

    def _error(self, what: str, back: int = 0) -> SpecError:
        line = self.lines[min(max(self.at - back, 0), len(self.lines) - 1)]
        return SpecError(f"{self.path}:{line.number}: {what}: {line.text!r}")


def _lines(path: Path) -> Iterator[_Line]:
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text, _, doc = raw.partition("#")
        if not raw.strip():
            continue
        indent = len(text) - len(text.lstrip(" "))
        if text.strip() and indent % 2:
            raise SpecError(f"{path}:{number}: indent by two spaces a level: {raw!r}")
        if text.strip() or number == 1 or raw.startswith("#"):
            yield _Line(number, indent // 2, text.strip(), doc.strip())
