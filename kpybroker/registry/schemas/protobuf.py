"""Protobuf: a .proto file, or the descriptor of one in base64, which some clients send.

Canonical: the file as Confluent's registry prints it (`proto.printer`). Normalized: with full names and sorted. Neither
has comments. protoc is not asked: what it would refuse is kept, as there. `serialized`, the descriptor in base64 with
which the console decodes messages, says then why it cannot be given.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace
from functools import cached_property
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from kpybroker.registry.errors import RegistryError
from kpybroker.registry.schemas.model import PROTOBUF, Identity, Texts
from kpybroker.registry.schemas.proto import printer
from kpybroker.registry.schemas.proto.descriptors import descriptors
from kpybroker.registry.schemas.proto.earlier import comparable
from kpybroker.registry.schemas.proto.elements import File
from kpybroker.registry.schemas.proto.from_descriptor import loaded, tree
from kpybroker.registry.schemas.proto.maps import with_maps
from kpybroker.registry.schemas.proto.names import names_of
from kpybroker.registry.schemas.proto.reader import read
from kpybroker.registry.schemas.protoc import ROOT, check_name, compiled

MAP_ENTRY: Final = "map_entry"


class ProtobufSchema:
    """A parsed schema: `tree` is its file."""

    kind = PROTOBUF

    def __init__(self, text: str | None, tree: File, references: Texts) -> None:
        """No text is that of a descriptor."""
        self.tree = tree
        self._text = printer.printed(tree) if text is None else text
        self._references = references

    @cached_property
    def _trees(self) -> list[File]:
        return [read(text) for text in self._references.values()]

    @cached_property
    def canonical(self) -> str:
        """As it is stored."""
        return printer.printed(self.tree)

    @cached_property
    def normalized(self) -> str:
        """As `normalize=true` stores it. Raises RegistryError 42201 for a name that no type has."""
        text = printer.normalized(self.tree, names_of(self.tree, self._trees))
        read(text)
        return text

    @cached_property
    def descriptors(self) -> list[FileDescriptorProto]:
        """Of all files that it knows, its own the last one."""
        return descriptors(self.tree, self._trees)

    @property
    def identity(self) -> Identity:
        """By the canonical text. A text that is stored in another form is of another registry, or an earlier version of
        this one, which spelled names and orders in their own ways: there what they mean is compared.
        """
        own = {self.canonical}
        if self._text != self.canonical:
            own |= self._meaning(self.tree)
        sought = {self.canonical} | self._meaning(self.tree)
        if self.tree.syntax is None:  # earlier versions wrote the line
            with_line = replace(self.tree, syntax="proto2")
            sought |= {printer.printed(with_line)} | self._meaning(with_line)
        return Identity(frozenset(own), frozenset(sought))

    def _meaning(self, tree: File) -> set[str]:
        """Empty where a name has none."""
        try:
            return {f"meaning {comparable(tree, names_of(tree, self._trees))}"}
        except RegistryError:
            return set()

    def check_names(self) -> None:
        """Those of types must mean something."""
        _ = self.normalized

    def formatted(self, form: str) -> str:
        """`serialized` is the descriptor in base64. Raises RegistryError 42201 where protoc refuses the file."""
        if form != "serialized":
            return self.canonical
        references = {name: _for_protoc(text, read(text)) for name, text in self._references.items()}
        file = _bare(compiled(_for_protoc(self._text, self.tree), references).file[-1])
        return base64.b64encode(file.SerializeToString(deterministic=True)).decode()


def parse(text: str, references: Texts, *, is_new: bool = False) -> ProtobufSchema:
    """Raises RegistryError 42201. Only of a new schema it is checked that all names mean something."""
    for name in filter(None, references):  # one without a name is known by its types, and protoc cannot be given it
        check_name(name)
    descriptor = _descriptor(text)
    if descriptor is None:
        parsed = ProtobufSchema(text, read(text), references)
    else:
        parsed = ProtobufSchema(None, tree(descriptor), references)
    if is_new:
        parsed.check_names()
    return parsed


def _for_protoc(text: str, file: File) -> str:
    return printer.printed(with_maps(file)) if MAP_ENTRY in text else text


def _descriptor(text: str) -> FileDescriptorProto | None:
    """Of a text that is base64 and no .proto file."""
    try:
        found = loaded(base64.b64decode(text, validate=True))
    except (ValueError, binascii.Error, DecodeError):
        return None
    return found if found.message_type or found.enum_type or found.extension else None


def _bare(file: FileDescriptorProto) -> FileDescriptorProto:
    """Equal for equal files: without comments, places and the file's own name."""
    made = FileDescriptorProto()
    made.CopyFrom(file)
    made.ClearField("source_code_info")
    made.name = ROOT
    return made
