"""Values of records as JSON and back, with the schemas of a registry: what `topic consume` and `produce` use.

Unlike `reading`, which shows all it can, nothing is lost or guessed here: Avro is its JSON form (`avro_json`), Protobuf
has the JSON mapping of its own library, and a value of JSON Schema is the text that it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.client.schemas.reading import PREFIX_BYTES, number_of
from kpybroker.client.schemas.registry import Registry, Schema

WHY_MAX: Final = 300
"""Characters of a library's text."""


class Codec(NamedTuple):
    """From the bytes after the id to a JSON value, and back. Both raise anything."""

    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes]


class NotOfSchema(CommandError):
    """A value that is not of its schema."""


class Values:
    """Reads and writes values with the schemas of one registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._codecs: dict[tuple[int, str | None], Codec] = {}

    def read(self, data: bytes) -> Any:
        """The JSON value of bytes that begin with an id. Raises CommandError; Away where the registry is."""
        number = number_of(data)
        if number is None:
            raise NotOfSchema("no id of a schema is in front of the bytes", "leave out --decode for this topic")
        codec = self.codec(number)
        try:
            value = codec.read(data[PREFIX_BYTES:])
            json.dumps(value, allow_nan=False)
        except CommandError:
            raise
        except Exception as error:  # of four libraries, for data that anyone sent
            raise _not_of(number, error, "look at the bytes: -f '%v{hex}'") from None
        return value

    def write(self, number: int, message: str | None, value: Any) -> bytes:
        """The bytes of a JSON value with the id in front. Raises CommandError."""
        codec = self.codec(number, message)
        try:
            return b"\0" + number.to_bytes(4, "big") + codec.write(value)
        except Exception as error:
            raise _not_of(number, error, "correct it") from None

    def number(self, named: str) -> int:
        """The id of `ID` or `SUBJECT`, of which it is the latest schema. Raises CommandError."""
        if named.isascii() and named.isdigit():
            if int(named) >= 2**31:
                raise usage(f"{named[:50]} is no id of a schema", "name an id or a subject")
            return int(named)
        return self._registry.latest(named)

    def codec(self, number: int, message: str | None = None) -> Codec:
        """Of the schema with this id, for this message of Protobuf. Raises CommandError."""
        key = (number, message)
        if key not in self._codecs:
            schema = self._registry.schema(number)
            make = MAKERS.get(schema.kind)
            if make is None:
                raise CommandError(f"schemas of type {schema.kind[:50]} are not known here", "leave out --decode")
            if message is not None and schema.kind != "PROTOBUF":
                raise usage(f"schema {number} is {schema.kind}, which has no messages", "leave out --message")
            try:
                self._codecs[key] = make(schema, message)
            except (CommandError, ModuleNotFoundError):
                raise
            except Exception as error:
                cause = f"schema {number} cannot be used: {type(error).__name__}: {str(error)[:WHY_MAX]}"
                raise CommandError(cause, "correct it in the registry") from None
        return self._codecs[key]


def _not_of(number: int, error: Exception, fix: str) -> NotOfSchema:
    why = str(error)[:WHY_MAX] or type(error).__name__
    return NotOfSchema(f"it is not of schema {number}: {why}", fix)


def _avro(schema: Schema, message: str | None) -> Codec:
    from kpybroker.client.schemas.avro_json import AvroJson

    found = AvroJson(schema.text, schema.references)
    return Codec(found.read, found.write)


def _protobuf(schema: Schema, message: str | None) -> Codec:
    from google.protobuf import json_format

    from kpybroker.client.schemas.descriptors import Messages

    messages = Messages(schema)
    pool = messages.pool

    def write(value: Any) -> bytes:
        indexes, made = messages.empty(message)
        _check_objects(made.DESCRIPTOR, value)
        json_format.ParseDict(value, made, descriptor_pool=pool)
        return indexes + bytes(made.SerializeToString(deterministic=True))

    def read(data: bytes) -> Any:
        return json_format.MessageToDict(messages.parsed(data), preserving_proto_field_name=True, descriptor_pool=pool)

    if message is not None:
        messages.empty(message)  # is there
    return Codec(read, write)


def _check_objects(message: Any, value: Any) -> None:
    """Raises ValueError where a message is neither object nor null: `json_format` takes [] and "" for an empty one."""
    if message.full_name.startswith("google.protobuf."):
        return
    if not isinstance(value, dict):
        raise ValueError(f"{json.dumps(value)[:WHY_MAX]} is not an object of {message.full_name}")
    fields = {name: field for field in message.fields for name in (field.name, field.json_name)}
    for name, inner in value.items():
        field = fields.get(name)
        if field is not None and field.message_type is not None and inner is not None:
            for part in _messages_in(field, name, inner):
                _check_objects(field.message_type, part)


def _messages_in(field: Any, name: str, value: Any) -> list[Any]:
    """The values of a field that are messages."""
    if field.message_type.GetOptions().map_entry:
        if not isinstance(value, dict):
            raise ValueError(f"{name} is not an object")
        return [{"value": part} for part in value.values()]
    if not isinstance(field.default_value, list):
        return [value]
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    return value


def _json(schema: Schema, message: str | None) -> Codec:
    from jsonschema.validators import Draft7Validator, validator_for
    from referencing import Registry as Resources
    from referencing.jsonschema import DRAFT7, specification_with

    root = json.loads(schema.text)
    resources: Any = Resources()
    for name, text in schema.references:
        contents = json.loads(text)
        named = contents.get("$schema") if isinstance(contents, dict) else None
        specification: Any = specification_with(named, default=DRAFT7) if isinstance(named, str) else DRAFT7
        resources = resources.with_resource(name, specification.create_resource(contents))
    validator = validator_for(root, default=Draft7Validator)(root, registry=resources)

    def write(value: Any) -> bytes:
        error = next(validator.iter_errors(value), None)
        if error is not None:
            where = "/".join(map(str, error.absolute_path))
            raise ValueError(f"{error.message} at /{where}")
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()

    return Codec(json.loads, write)


MAKERS: Final[dict[str, Callable[[Schema, str | None], Codec]]] = {
    "AVRO": _avro,
    "PROTOBUF": _protobuf,
    "JSON": _json,
}
