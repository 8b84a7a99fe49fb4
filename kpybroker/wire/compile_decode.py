"""Compiles one decode function per (message class, version).

The function is flat: nested structs become nested loops, consecutive fixed-size fields and the length byte
after them one `struct` call, and objects are filled without calling `__init__`. Its signature is (buffer,
position, end, budget) -> (message, position); `budget` is how many array elements and unknown tagged fields
it may still create. Every count is checked against the bytes left before anything is built, so memory stays
proportional to the frame.

With `in_steps` the function is a generator that yields after every SLICE_UNITS array elements, so that other tasks
can run while a large frame is decoded; its return value is the same. Not here: the bounds of the frame itself, and any
meaning of the values.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from typing import Any

from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.primitives import (
    FORMATS,
    Buffer,
    array_unpacker,
    claim,
    read_tagged_fields,
    string_length_tail,
    varint_tail,
)
from kpybroker.wire.schema import Field, Message, is_flexible, struct_fields
from kpybroker.wire.source import Source

Decoder = Callable[[Buffer, int, int, int], tuple[Any, int]]
StepDecoder = Callable[[Buffer, int, int, int], Generator[None, None, tuple[Any, int]]]


def _bad_length(name: str, length: int, remaining: int) -> ProtocolError:
    if length < 0:
        return ProtocolError(f"{name} is null where it may not be")
    return ProtocolError(f"{name} claims {length} bytes, {remaining} are left")


_NAMESPACE = {
    "new": object.__new__,
    "varint_tail": varint_tail,
    "string_length_tail": string_length_tail,
    "claim": claim,
    "read_tagged_fields": read_tagged_fields,
    "bad_length": _bad_length,
    "ProtocolError": ProtocolError,
}


def compile_decoder(message_class: type[Message], version: int, in_steps: bool) -> Any:
    """The decode function of one version, which the caller keeps: a Decoder, or with `in_steps` a StepDecoder."""
    writer = _DecoderWriter(message_class, version, Source(_NAMESPACE, in_steps))
    writer.struct(message_class, "message")
    writer.flush()
    writer.source.line("return message, p")
    return writer.source.compile("buffer, p, end, budget", f"decode {message_class.__name__} v{version}")


def min_size(message_class: type[Message], struct_class: type[Message], version: int) -> int:
    """The fewest bytes one struct can take in this version."""
    flexible = is_flexible(message_class, version)
    total = 1 if flexible else 0
    for field in struct_fields(message_class, struct_class):
        if field.present(version) and not field.is_tagged(version):
            total += field_min_size(message_class, field, version)
    return total


def field_min_size(message_class: type[Message], field: Field, version: int) -> int:
    """The fewest bytes that one field, present in this version, can take."""
    if field.array:
        return 1 if is_flexible(message_class, version) else 4
    if field.struct is not None:
        return 1 if field.is_nullable(version) else min_size(message_class, field.struct, version)
    return _primitive_min_size(field.type_name, is_flexible(message_class, version))


def _primitive_min_size(type_name: str, flexible: bool) -> int:
    if type_name in FORMATS:
        return struct.calcsize(">" + FORMATS[type_name])
    if flexible:
        return 1
    return 2 if type_name == "string" else 4


def _array_unpacker(type_name: str) -> Callable[[], Any]:
    return lambda: array_unpacker(FORMATS[type_name])


class _DecoderWriter:
    """Walks a schema at one version and writes the decode function's body.

    `_run` holds fixed-size values not yet read: (format, assignment target). `flush` reads them in one go.
    """

    def __init__(self, message_class: type[Message], version: int, source: Source) -> None:
        self.message_class = message_class
        self.version = version
        self.flexible = is_flexible(message_class, version)
        self.source = source
        self._run: list[tuple[str, str]] = []

    def flush(self) -> None:
        run, self._run = self._run, []
        if not run:
            return
        formats = "".join(fmt for fmt, _ in run)
        targets = ", ".join(target for _, target in run)
        if formats == "B":
            self.source.line(f"{targets} = buffer[p]")
        else:
            comma = "," if len(run) == 1 else ""
            self.source.line(f"{targets}{comma} = {self.source.unpacker(formats)}(buffer, p)")
        self.source.line(f"p += {struct.calcsize('>' + formats)}")

    def struct(self, struct_class: type[Message], target: str) -> None:
        """Creates the object in `target` and reads its fields into it; may leave a pending run."""
        self.source.line(f"{target} = new({self.source.bind(struct_class.__name__ + '_', struct_class)})")
        tagged, reserved = [], []
        for field in struct_fields(self.message_class, struct_class):
            attribute = f"{target}.{field.name}"
            if field.tag is not None and not field.is_tagged(self.version):
                reserved.append(field.tag)
            if not field.present(self.version):
                self._default(field, attribute)
            elif field.is_tagged(self.version):
                self._default(field, attribute)
                tagged.append(field)
            else:
                self._field(field, attribute)
        self.source.line(f"{target}.unknown_tagged_fields = ()")
        if self.flexible:
            self._tagged_section(tagged, reserved, target)

    def _default(self, field: Field, attribute: str) -> None:
        if field.default != ():
            self.source.line(f"{attribute} = {field.default!r}")
        elif field.array:
            self.source.line(f"{attribute} = []")
        else:
            assert field.struct is not None
            self.source.line(f"{attribute} = {self.source.bind(field.struct.__name__ + '_', field.struct)}()")

    def _field(self, field: Field, attribute: str) -> None:
        if field.array:
            self._array(field, attribute)
        elif field.struct is not None:
            self._nested(field, field.struct, attribute)
        else:
            self._primitive(field.type_name, attribute, field.name, field.is_nullable(self.version))

    def _primitive(self, type_name: str, target: str, name: str, nullable: bool) -> None:
        if type_name in FORMATS:
            self._run.append((FORMATS[type_name], target))
            return
        line = self.source.line
        self._length(string=type_name == "string")
        if nullable:
            with self.source.block("if n < 0:"):
                line(f"{target} = None")
            with self.source.block("else:"):
                self._payload(type_name, target, name)
        else:
            self._payload(type_name, target, name)

    def _payload(self, type_name: str, target: str, name: str) -> None:
        self.source.line("q = p + n")
        with self.source.block("if not p <= q <= end:"):
            self.source.line(f"raise bad_length({name!r}, n, end - p)")
        value = {
            "string": "str(buffer[p:q], 'utf-8')",
            "bytes": "bytes(buffer[p:q])",
            "records": "memoryview(buffer)[p:q]",
        }[type_name]
        self.source.line(f"{target} = {value}")
        self.source.line("p = q")

    def _length(self, string: bool = False) -> None:
        """Leaves a length or count in `n`, negative for null."""
        if not self.flexible:
            self._run.append(("h" if string else "i", "n"))
            self.flush()
            return
        self._run.append(("B", "n"))
        self.flush()
        with self.source.block("if n > 127:"):
            self.source.line(f"n, p = {'string_length_tail' if string else 'varint_tail'}(buffer, p, n)")
        self.source.line("n -= 1")

    def _array(self, field: Field, attribute: str) -> None:
        self._length()
        if field.is_nullable(self.version):
            with self.source.block("if n < 0:"):
                self.source.line(f"{attribute} = None")
            with self.source.block("else:"):
                self._elements(field, attribute)
                self.flush()
        else:
            self._elements(field, attribute)

    def _elements(self, field: Field, attribute: str) -> None:
        line = self.source.line
        if field.struct is not None:
            smallest = min_size(self.message_class, field.struct, self.version)
        else:
            smallest = _primitive_min_size(field.type_name, self.flexible)
        line(f"budget = claim(n, {max(smallest, 1)}, end - p, budget)")
        if field.type_name in FORMATS:
            unpack = self.source.bind_made(f"unpack_array_{field.type_name}", _array_unpacker(field.type_name))
            line(f"{attribute} = {unpack}(buffer, p, n)")
            line(f"p += n * {smallest}")
            return
        items = self.source.name("items")
        line(f"{items} = []")
        line(f"{attribute} = {items}")
        with self.source.block("for _ in range(n):"):
            item = self.source.name("item")
            if field.struct is not None:
                self.struct(field.struct, item)
            else:
                self._primitive(field.type_name, item, field.name, nullable=False)
            self.flush()
            line(f"{items}.append({item})")
            self.source.step()

    def _nested(self, field: Field, struct_class: type[Message], attribute: str) -> None:
        nested = self.source.name("nested")
        if field.is_nullable(self.version):
            self._run.append(("b", "n"))
            self.flush()
            with self.source.block("if n < 1:" if field.is_tagged(self.version) else "if n < 0:"):
                self.source.line(f"{attribute} = None")
            with self.source.block("else:"):
                self.struct(struct_class, nested)
                self.flush()
                self.source.line(f"{attribute} = {nested}")
            return
        self.struct(struct_class, nested)
        self.flush()
        self.source.line(f"{attribute} = {nested}")

    def _tagged_section(self, tagged: list[Field], reserved: list[int], target: str) -> None:
        """`reserved` tags belong to other versions: Kafka refuses them rather than keep them as unknown."""
        line = self.source.line
        count = self.source.name("tags")
        self._run.append(("B", count))
        self.flush()
        with self.source.block(f"if {count}:"):
            if not tagged and not reserved:
                line(f"{target}.unknown_tagged_fields, p, budget = read_tagged_fields(buffer, p, end, {count}, budget)")
                return
            with self.source.block(f"if {count} > 127:"):
                line(f"{count}, p = varint_tail(buffer, p, {count})")
            line(f"budget = claim({count}, 2, end - p, budget)")
            unknown = self.source.name("unknown")
            line(f"{unknown} = []")
            with self.source.block(f"for _ in range({count}):"):
                self._one_tag(tagged, reserved, target, unknown)
            with self.source.block(f"if {unknown}:"):
                line(f"{target}.unknown_tagged_fields = tuple({unknown})")

    def _one_tag(self, tagged: list[Field], reserved: list[int], target: str, unknown: str) -> None:
        line = self.source.line
        stop = self.source.name("stop")
        for variable in ("tag", "size"):
            line(f"{variable} = buffer[p]")
            line("p += 1")
            with self.source.block(f"if {variable} > 127:"):
                line(f"{variable}, p = varint_tail(buffer, p, {variable})")
        line(f"{stop} = p + size")
        with self.source.block(f"if {stop} > end:"):
            line("raise ProtocolError(f'tagged field {tag} claims {size} bytes, {end - p} are left')")
        keyword = "if"
        for field in tagged:
            with self.source.block(f"{keyword} tag == {field.tag}:"):
                self._field(field, f"{target}.{field.name}")
                self.flush()
            keyword = "elif"
        for tag in reserved:
            with self.source.block(f"{keyword} tag == {tag}:"):
                line(f"raise ProtocolError('tag {tag} is of another version')")
            keyword = "elif"
        with self.source.block("else:"):
            line(f"{unknown}.append((tag, bytes(buffer[p:{stop}])))")
            line(f"p = {stop}")
        with self.source.block(f"if p != {stop}:"):
            line("raise ProtocolError(f'tagged field {tag} does not fill its {size} bytes')")
