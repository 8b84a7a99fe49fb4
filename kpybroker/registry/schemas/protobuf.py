"""Protobuf: a .proto file, or the descriptor of one in base64, which some clients send.

Canonical: the file written in one way, with its comments (`proto_text`); protoc must make the same of it, else the text
stays as it is. Normalized: without comments too. `serialized` is the descriptor in base64, which the console decodes
messages with.
"""

from __future__ import annotations

import base64
import binascii
from functools import cached_property

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from kpybroker.registry.errors import RegistryError, invalid_schema
from kpybroker.registry.schemas.model import PROTOBUF, Texts
from kpybroker.registry.schemas.proto_text import Unprintable, text_of
from kpybroker.registry.schemas.protoc import ROOT, check_name, compiled


class ProtobufSchema:
    """A parsed schema: `files` are all that it needs, `file` is its own, without comments."""

    kind = PROTOBUF

    def __init__(self, text: str, files: FileDescriptorSet, references: Texts) -> None:
        self.files = files
        self.file = _bare(files.file[-1])
        self._commented = files.file[-1]
        self._text = text
        self._references = references

    @cached_property
    def canonical(self) -> str:
        """With comments."""
        return self._written(self._commented)

    @cached_property
    def normalized(self) -> str:
        """Without comments."""
        return self._written(self.file)

    @property
    def identity(self) -> str:
        """The canonical text."""
        return self.canonical

    def formatted(self, form: str) -> str:
        """`serialized` is the descriptor in base64."""
        if form == "serialized":
            return base64.b64encode(self.file.SerializeToString(deterministic=True)).decode()
        return self.canonical

    def _written(self, file: FileDescriptorProto) -> str:
        try:
            text = text_of(file)
            if _bare(compiled(text, self._references).file[-1]) == self.file:
                return text
        except (Unprintable, RegistryError):
            pass
        return self._text


def parse(text: str, references: Texts, *, is_new: bool = False) -> ProtobufSchema:
    """Raises RegistryError 42201."""
    for name in references:
        check_name(name)
    descriptor = _descriptor(text)
    if descriptor is None:
        return ProtobufSchema(text, compiled(text, references), references)
    try:
        written = text_of(descriptor)
    except Unprintable as error:
        raise invalid_schema(f"a descriptor with {error} cannot be written as text: register the .proto file") from None
    return ProtobufSchema(written, compiled(written, references), references)


def _descriptor(text: str) -> FileDescriptorProto | None:
    """Of a text that is base64 and no .proto file."""
    try:
        found = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
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
