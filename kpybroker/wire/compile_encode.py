"""Compiles one encode function per (message class, version).

The function takes (message, append) and appends chunks: bytes, and the object in a `records` field as it is. It does
what Kafka's generated writers do: tagged fields only when they differ from their default, unknown tagged fields in
their place, and UnsupportedFieldError for a field that this version lacks, is not ignorable, and is not at its
default. An error message is cut to what a string holds (`ERROR_TEXTS`); any other string that is too long is an error.

With `in_steps` the function is a generator that yields after every SLICE_UNITS array elements, so that other tasks
can run while a large message is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.primitives import (
    BYTE,
    FORMATS,
    array_packer,
    error_text,
    merge_tagged_fields,
    string_length,
    unsigned_varint,
    write_tagged_fields,
)
from kpybroker.wire.schema import Field, Message, is_flexible, struct_fields
from kpybroker.wire.source import Source

Encoder = Callable[[Any, Callable[[Any], None]], None]
StepEncoder = Callable[[Any, Callable[[Any], None]], Iterator[None]]


ERROR_TEXTS = frozenset({"error_message", "acknowledge_error_message", "batch_index_error_message"})
"""The fields with texts for people. They quote what was sent, and several of such names are longer than a string."""


class UnsupportedFieldError(ValueError):
    """A field is set that the requested version does not have: an error of the calling code."""


def size_of(records: Any) -> int:
    """Bytes in a `records` value: bytes-like, or anything with a `size` (a slice of a segment file)."""
    if isinstance(records, (bytes, bytearray)):
        return len(records)
    if isinstance(records, memoryview):
        return records.nbytes
    size: int = records.size
    return size


_NAMESPACE = {
    "BYTE": BYTE,
    "ZERO_UUID": ZERO_UUID,
    "unsigned_varint": unsigned_varint,
    "string_length": string_length,
    "error_text": error_text,
    "merge_tagged_fields": merge_tagged_fields,
    "write_tagged_fields": write_tagged_fields,
    "size_of": size_of,
    "UnsupportedFieldError": UnsupportedFieldError,
}


def compile_encoder(message_class: type[Message], version: int, in_steps: bool) -> Any:
    """The encode function of one version, which the caller keeps: an Encoder, or with `in_steps` a StepEncoder."""
    writer = _EncoderWriter(message_class, version, Source(_NAMESPACE, in_steps))
    writer.struct(message_class, "message")
    writer.flush()
    return writer.source.compile("message, append", f"encode {message_class.__name__} v{version}")


def _array_packer(type_name: str) -> Callable[[], Any]:
    return lambda: array_packer(FORMATS[type_name])


class _EncoderWriter:
    """Walks a schema at one version and writes the encode function's body.

    `_run` holds fixed-size values not yet written: (format, expression). A varint can only end a run; as long
    as it is below 128 it is just one more byte of it.
    """

    def __init__(self, message_class: type[Message], version: int, source: Source) -> None:
        self.message_class = message_class
        self.version = version
        self.flexible = is_flexible(message_class, version)
        self.source = source
        self._run: list[tuple[str, str]] = []
        self._append = "append"

    def flush(self) -> None:
        run, self._run = self._run, []
        if run:
            self.source.line(f"{self._append}({self._packed(run)})")

    def _packed(self, run: list[tuple[str, str]]) -> str:
        formats = "".join(fmt for fmt, _ in run)
        return f"{self.source.packer(formats)}({', '.join(value for _, value in run)})"

    def _flush_with_varint(self, variable: str, function: str = "unsigned_varint") -> None:
        """Writes the pending run and then the varint in `variable`."""
        run, self._run = self._run, []
        if run:
            short = self._packed([*run, ("B", variable)])
            long = f"{self._packed(run)} + {function}({variable})"
        else:
            short, long = f"BYTE[{variable}]", f"{function}({variable})"
        self.source.line(f"{self._append}({short} if {variable} < 128 else {long})")

    def struct(self, struct_class: type[Message], value: str) -> None:
        """Writes the fields of the object in `value`; may leave a pending run."""
        tagged = []
        for field in struct_fields(self.message_class, struct_class):
            attribute = f"{value}.{field.name}"
            if not field.present(self.version):
                if not field.ignorable:
                    self._refuse_if_set(field, attribute)
            elif field.is_tagged(self.version):
                tagged.append(field)
            else:
                self._field(field, attribute)
        if self.flexible:
            self._tagged_section(tagged, value)

    def _is_set(self, field: Field, attribute: str) -> str:
        """An expression: the field differs from its default."""
        if field.default is None:
            return f"{attribute} is not None"
        if field.default == () and field.array:
            return f"{attribute} is None or {attribute}" if field.nullable else attribute
        if field.default == ():
            assert field.struct is not None
            return f"{attribute} != {self.source.bind(field.struct.__name__ + '_', field.struct)}()"
        if field.default is False or field.default == "" or field.default == b"":
            return attribute if not field.nullable else f"{attribute} is None or {attribute}"
        if field.default is True:
            return f"not {attribute}"
        if field.default == ZERO_UUID:
            return f"{attribute} != ZERO_UUID"
        return f"{attribute} != {field.default!r}"

    def _refuse_if_set(self, field: Field, attribute: str) -> None:
        with self.source.block(f"if {self._is_set(field, attribute)}:"):
            what = f"{self.message_class.__name__}: version {self.version} has no {field.name}"
            self.source.line(f"raise UnsupportedFieldError({what!r})")

    def _field(self, field: Field, attribute: str) -> None:
        if field.array:
            self._array(field, attribute)
        elif field.struct is not None:
            self._nested(field, field.struct, attribute)
        else:
            text = field.name in ERROR_TEXTS
            self._primitive(field.type_name, attribute, field.is_nullable(self.version), is_error_text=text)

    def _primitive(self, type_name: str, value: str, nullable: bool, is_error_text: bool = False) -> None:
        if type_name in FORMATS:
            self._run.append((FORMATS[type_name], value))
            return
        line = self.source.line
        data = self.source.name("data")
        line(f"{data} = {value}")
        encoded = f"{data} = {data}.encode()" if type_name == "string" else None
        if is_error_text:
            encoded = f"{data} = error_text({data})"
        length = f"size_of({data})" if type_name == "records" else f"len({data})"
        extra = " + 1" if self.flexible else ""
        if nullable:
            with self.source.block(f"if {data} is None:"):
                line(f"n = {0 if self.flexible else -1}")
                line(f"{data} = b''")
            with self.source.block("else:"):
                if encoded:
                    line(encoded)
                line(f"n = {length}{extra}")
        else:
            if encoded:
                line(encoded)
            line(f"n = {length}{extra}")
        self._length("n", string=type_name == "string")
        line(f"{self._append}({data})")

    def _length(self, variable: str, string: bool = False) -> None:
        if self.flexible:
            self._flush_with_varint(variable, "string_length" if string else "unsigned_varint")
        else:
            self._run.append(("h" if string else "i", variable))
            self.flush()

    def _array(self, field: Field, attribute: str) -> None:
        line = self.source.line
        items = self.source.name("items")
        extra = " + 1" if self.flexible else ""
        line(f"{items} = {attribute}")
        if field.is_nullable(self.version):
            with self.source.block(f"if {items} is None:"):
                line(f"n = {0 if self.flexible else -1}")
                line(f"{items} = ()")
            with self.source.block("else:"):
                line(f"n = len({items}){extra}")
        else:
            line(f"n = len({items}){extra}")
        self._length("n")
        if field.type_name in FORMATS:
            pack = self.source.bind_made(f"pack_array_{field.type_name}", _array_packer(field.type_name))
            line(f"{self._append}({pack}({items}))")
            return
        item = self.source.name("item")
        with self.source.block(f"for {item} in {items}:"):
            if field.struct is not None:
                self.struct(field.struct, item)
            else:
                self._primitive(field.type_name, item, nullable=False)
            self.flush()
            self.source.step()

    def _nested(self, field: Field, struct_class: type[Message], attribute: str) -> None:
        nested = self.source.name("nested")
        self.flush()
        self.source.line(f"{nested} = {attribute}")
        if field.is_nullable(self.version):
            with self.source.block(f"if {nested} is None:"):
                # in a tagged field Kafka writes an unsigned varint in place of a signed byte
                null = "b'\\x00'" if field.is_tagged(self.version) else "b'\\xff'"
                self.source.line(f"{self._append}({null})")
            with self.source.block("else:"):
                self.source.line(f"{self._append}(b'\\x01')")
                self.struct(struct_class, nested)
                self.flush()
        else:
            self.struct(struct_class, nested)

    def _tagged_section(self, tagged: list[Field], value: str) -> None:
        line = self.source.line
        tags = self.source.name("tags")
        if not tagged:
            line(f"{tags} = {value}.unknown_tagged_fields")
        else:
            known = self.source.name("known")
            self.flush()
            line(f"{known} = []")
            for field in sorted(tagged, key=lambda field: field.tag or 0):
                self._one_tag(field, f"{value}.{field.name}", known)
            line(f"{tags} = merge_tagged_fields({known}, {value}.unknown_tagged_fields)")
        line(f"n = len({tags})")
        self._flush_with_varint("n")
        with self.source.block("if n:"):
            line(f"write_tagged_fields({self._append}, {tags})")

    def _one_tag(self, field: Field, attribute: str, known: str) -> None:
        condition = self._is_set(field, attribute)
        if field.struct is not None and not field.array and not field.nullable:
            # A tagged struct may be None here, meaning what Kafka keeps as an object full of defaults.
            struct_name = self.source.bind(field.struct.__name__ + "_", field.struct)
            condition = f"{attribute} is not None and {attribute} != {struct_name}()"
        with self.source.block(f"if {condition}:"):
            if field.type_name in FORMATS and not field.array:
                packed = self._packed([(FORMATS[field.type_name], attribute)])
                self.source.line(f"{known}.append(({field.tag}, {packed}))")
                return
            outer, chunks = self._append, self.source.name("chunks")
            self._append = self.source.name("append_tagged")
            self.source.line(f"{chunks} = []")
            self.source.line(f"{self._append} = {chunks}.append")
            self._field(field, attribute)
            self.flush()
            self._append = outer
            self.source.line(f"{known}.append(({field.tag}, b''.join({chunks})))")
