"""`read`: from the text of a .proto file to its tree.

As in Wire: words of the language are names where they cannot be what they say, numbers and names are not checked, and
proto2 needs a label at each field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kpybroker.registry.schemas.model import DEPTH_MAX
from kpybroker.registry.schemas.proto.elements import (
    TAG_MAX,
    Constant,
    EnumType,
    Extend,
    Field,
    File,
    Group,
    Label,
    MessageType,
    Method,
    OneOf,
    Option,
    Range,
    Ranges,
    Service,
)
from kpybroker.registry.schemas.proto.options import read_list, read_option
from kpybroker.registry.schemas.proto.syntax import QUOTES, Syntax

LABELS = ("required", "optional", "repeated")
SYNTAXES = ("proto2", "proto3")


def read(text: str) -> File:
    """Raises RegistryError 42201 for a text that is not a .proto file."""
    return _Reader(text).file()


class _Reader:
    def __init__(self, text: str) -> None:
        self._syntax = Syntax(text)
        self._file = File()
        self._depth = 0

    def file(self) -> File:
        """All declarations."""
        syntax, file = self._syntax, self._file
        is_first = True
        while not syntax.is_at_end():
            if not syntax.takes(";"):
                self._declaration(syntax.word(), is_first=is_first)
            is_first = False
        for named in (file.types, file.services):
            seen: set[str] = set()
            for one in named:
                if one.name in seen:
                    syntax.refuse(f"{one.name} is defined twice")
                seen.add(one.name)
        return file

    def _declaration(self, word: str, *, is_first: bool) -> None:
        syntax, file = self._syntax, self._file
        match word:
            case "package":
                file.package = syntax.name()
                if file.package.count(".") >= DEPTH_MAX:
                    syntax.refuse(f"the package has more than {DEPTH_MAX} parts")
                syntax.require(";")
            case "import":
                self._import()
            case "syntax":
                self._read_syntax(is_first=is_first)
            case "option":
                file.options.append(self._option())
            case "reserved":
                self._reserved()
            case "message":
                file.types.append(self._message())
            case "enum":
                file.types.append(self._enum())
            case "service":
                file.services.append(self._service())
            case "extend":
                file.extends.append(self._extend())
            case "edition":
                syntax.refuse("editions are not supported")
            case _:
                syntax.refuse(f"unexpected {word}")

    def _import(self) -> None:
        found = self._syntax.string()
        if found == "public":
            self._file.public_imports.append(_path(self._syntax.string()))
        elif found == "weak":
            self._syntax.string()
        else:
            self._file.imports.append(_path(found))
        self._syntax.require(";")

    def _read_syntax(self, *, is_first: bool) -> None:
        if not is_first:
            self._syntax.refuse("syntax is not the first declaration")
        self._syntax.require("=")
        if self._syntax.peek() not in QUOTES:
            self._syntax.refuse("expected a text")
        self._file.syntax = self._syntax.quoted()
        if self._file.syntax not in SYNTAXES:
            self._syntax.refuse(f"unexpected syntax {self._file.syntax}")
        self._syntax.require(";")

    def _option(self) -> Option:
        found = read_option(self._syntax)
        self._syntax.require(";")
        return found

    def _body(self, declared: Callable[[str], None], *, may_start_with_digit: bool = True) -> None:
        """What is between braces, one word after the other."""
        self._syntax.require("{")
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._syntax.refuse(f"it is nested deeper than {DEPTH_MAX} levels")
        while not self._syntax.takes("}"):
            if not self._syntax.takes(";"):
                declared(self._syntax.word(may_start_with_digit=may_start_with_digit))
        self._depth -= 1

    def _message(self) -> MessageType:
        made = MessageType(self._syntax.name())

        def declared(word: str) -> None:
            match word:
                case "option":
                    made.options.append(self._option())
                case "reserved":
                    made.reserved.append(self._reserved())
                case "message":
                    made.types.append(self._message())
                case "enum":
                    made.types.append(self._enum())
                case "extend":
                    made.extends.append(self._extend())
                case "oneof":
                    made.oneofs.append(self._oneof())
                case "extensions":
                    made.extensions.append(self._extensions())
                case _:
                    found = self._field(word)
                    made.groups.append(found) if isinstance(found, Group) else made.fields.append(found)

        self._body(declared)
        return made

    def _extend(self) -> Extend:
        made = Extend(self._syntax.name())

        def declared(word: str) -> None:
            if word == "option":
                self._option()
            elif word == "reserved":
                self._reserved()
            elif isinstance(found := self._field(word), Field):
                made.fields.append(found)

        self._body(declared)
        return made

    def _enum(self) -> EnumType:
        made = EnumType(self._syntax.name())

        def declared(word: str) -> None:
            if word == "option":
                made.options.append(self._option())
            elif word == "reserved":
                made.reserved.append(self._reserved())
            else:
                self._syntax.require("=")
                number = self._syntax.integer()
                made.constants.append(Constant(word, number, read_list(self._syntax)))
                self._syntax.end_statement()

        self._body(declared, may_start_with_digit=False)
        return made

    def _service(self) -> Service:
        made = Service(self._syntax.name())

        def declared(word: str) -> None:
            if word == "option":
                made.options.append(self._option())
            elif word == "rpc":
                made.methods.append(self._method())
            elif word == "reserved":
                self._reserved()
            else:
                self._syntax.refuse(f"unexpected {word}")

        self._body(declared)
        return made

    def _method(self) -> Method:
        syntax = self._syntax
        name = syntax.name()
        request, is_request_stream = self._message_of_method()
        if syntax.word() != "returns":
            syntax.refuse("expected 'returns'")
        response, is_response_stream = self._message_of_method()
        options: list[Option] = []

        def declared(word: str) -> None:
            if word == "option":
                options.append(self._option())
            elif word == "reserved":
                self._reserved()
            else:
                syntax.refuse(f"unexpected {word}")

        if syntax.peek() == "{":
            self._body(declared)
        else:
            syntax.require(";")
        return Method(name, request, response, is_request_stream, is_response_stream, options)

    def _message_of_method(self) -> tuple[str, bool]:
        self._syntax.require("(")
        word = self._syntax.word()
        is_stream = word == "stream"
        found = self._syntax.type(None if is_stream else word)
        self._syntax.require(")")
        return found, is_stream

    def _field(self, word: str) -> Field | Group:
        syntax = self._syntax
        label, first = (word, None) if word in LABELS else ("", word)
        if label == "required" and self._file.syntax == "proto3":
            syntax.refuse("proto3 has no required fields")
        if not label and self._file.syntax != "proto3" and not (word == "map" and syntax.peek() == "<"):
            syntax.refuse(f"unexpected {word}: a field needs a label without proto3")
        kind = syntax.type(first)
        if kind.startswith("map<") and label:
            syntax.refuse("a map has a label")
        return self._group(label) if kind == "group" else self._rest_of_field(label, kind)

    def _rest_of_field(self, label: Label, kind: str) -> Field:
        syntax = self._syntax
        name = syntax.name(may_start_with_digit=False)
        syntax.require("=")
        number = syntax.integer()
        options = read_list(syntax)
        syntax.end_statement()
        found: dict[str, Any] = {one.name: one.value for one in options if one.name in ("default", "json_name")}
        rest = [one for one in options if one.name not in found]
        default, json_name = (str(found[key]) if key in found else None for key in ("default", "json_name"))
        return Field(label, kind, name, number, default, json_name, rest)

    def _oneof(self) -> OneOf:
        made = OneOf(self._syntax.name())
        self._syntax.require("{")
        while not self._syntax.takes("}"):
            kind = self._syntax.type()
            if kind == "group":
                made.groups.append(self._group(""))
            elif kind == "option":
                made.options.append(self._option())
            else:
                made.fields.append(self._rest_of_field("", kind))
        return made

    def _group(self, label: Label) -> Group:
        syntax = self._syntax
        name = syntax.word()
        syntax.require("=")
        number = syntax.integer()
        fields: list[Field] = []
        syntax.require("{")
        while not syntax.takes("}"):
            found = self._field(syntax.word())
            if isinstance(found, Group):
                syntax.refuse("a group is directly in a group")
            fields.append(found)
        return Group(label, name, number, fields)

    def _reserved(self) -> Ranges:
        values: list[Range] = []
        while True:
            values.append(self._syntax.quoted() if self._syntax.peek() in QUOTES else self._range(",;"))
            if self._syntax.peek() == ";":
                self._syntax.end_statement()
                return Ranges(values)
            self._syntax.require(",")

    def _extensions(self) -> Ranges:
        values: list[Range] = []
        while True:
            values.append(self._range(",;["))
            if self._syntax.peek() == "[":
                options = read_list(self._syntax)
                self._syntax.require(";")
                return Ranges(values, options)
            if self._syntax.takes(";"):
                return Ranges(values)
            self._syntax.require(",")

    def _range(self, ends: str) -> Range:
        first = self._syntax.integer()
        if self._syntax.peek() in ends:
            return first
        if self._syntax.word() != "to":
            self._syntax.refuse("expected 'to'")
        before = self._syntax.at
        if self._syntax.word() == "max":
            return first, TAG_MAX
        self._syntax.at = before
        return first, self._syntax.integer()


def _path(text: str) -> str:
    """The path of an import, with single slashes and without steps that go nowhere."""
    slashed = text.replace("\\", "/")
    steps = "/".join(step for step in slashed.split("/") if step not in ("", "."))
    return f"/{steps}" if slashed.startswith("/") else steps or "."
