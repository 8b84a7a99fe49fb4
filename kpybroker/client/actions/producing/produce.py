"""`topic produce`: the options, checked before anything is sent, and the input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, BinaryIO

from kpybroker.client.actions.producing.creation import Creation
from kpybroker.client.actions.producing.delivery import Delivery
from kpybroker.client.actions.producing.options import ProduceOptions
from kpybroker.client.actions.schemas import SchemaOptions, encoder
from kpybroker.client.connect.errors import usage
from kpybroker.client.connect.settings import Connection, Settings, load
from kpybroker.client.records.lines import LineOptions, Parse, parser
from kpybroker.client.records.output import writer
from kpybroker.client.records.record import Record
from kpybroker.client.records.template import BadTemplate, unescape

STDIN = "-"


def produce(connection: Connection, options: ProduceOptions) -> int:
    """Send what the input has; 0 if all of it was delivered."""
    schemas = _schemas(options)
    try:
        parse, delimiter = _parser(options, schemas), unescape(options.delimiter)
        show = None
        if options.output_format is not None:
            show = writer(options.output_format, is_terminal=sys.stdout.isatty())
    except BadTemplate as error:
        raise usage(str(error), "kpybroker topic produce --help has the formats") from None
    if not delimiter:
        raise usage("-D is empty", "name what ends a record, as in -D '\\n'")
    settings = load(connection._replace(registry=options.schema_registry))
    with ExitStack() as stack:
        source = stack.enter_context(_input(options.file))
        undelivered = stack.enter_context(_opened(options.undelivered)) if options.undelivered else None
        if schemas is not None:
            parse = _encoded(parse, settings, schemas)
        creation = Creation(settings) if options.create else None
        delivery = Delivery(settings, options, show, undelivered, creation)
        return delivery.run(source, delimiter, parse)


def _schemas(options: ProduceOptions) -> SchemaOptions | None:
    schemas = SchemaOptions(options.value_schema, options.key_schema, options.message)
    if schemas.fields:
        return schemas
    if options.schema_registry is not None or options.message is not None:
        raise usage("no schema is named", "name it: --value-schema ID or SUBJECT, --key-schema ID or SUBJECT")
    return None


def _encoded(parse: Parse, settings: Settings, schemas: SchemaOptions) -> Parse:
    encode = encoder(settings, schemas)

    def parse_and_encode(piece: bytes) -> Record:
        return encode(parse(piece))

    return parse_and_encode


@contextmanager
def _input(path: str | None) -> Iterator[Any]:
    if path is None or path == STDIN:
        yield sys.stdin.buffer
        return
    try:
        file = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise usage(f"{path} cannot be read: {error.strerror}", "name a file that this user may read") from None
    with file:
        yield file


def _parser(options: ProduceOptions, schemas: SchemaOptions | None) -> Parse:
    if options.format_name != "line" and options.key_separator is not None:
        raise usage(
            f"-K separates the parts of a line, and the format is {options.format_name}", "leave one of them out"
        )
    separator = None if options.key_separator is None else unescape(options.key_separator)
    if separator == b"":
        raise usage("-K is empty", "name what separates a key from its value, as in -K:")
    headers = tuple(parse_header(text) for text in options.headers)
    key = None if options.key is None else os.fsencode(options.key)
    encoded = frozenset() if schemas is None else schemas.fields
    return parser(options.format_name, LineOptions(key, separator, headers, options.empty_is_null, encoded))


def parse_header(text: str) -> tuple[str, bytes | None]:
    """`NAME=VALUE`; `NAME` alone has a null value. Both may be bytes of any kind. Raises CommandError."""
    name, equals, value = text.partition("=")
    if not name:
        raise usage(f"{text!r} has no name", "write -H NAME=VALUE")
    return name, os.fsencode(value) if equals else None


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    try:
        file = open(path, "ab")  # noqa: SIM115
    except OSError as error:
        raise usage(f"{path} cannot be written: {error.strerror}", "name a file that this user may write") from None
    try:
        yield file
    finally:
        with suppress(OSError):  # reported when it was written
            file.close()
