"""Records with a schema registry: decoded by `topic consume`, encoded by `topic produce`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from kpybroker.client.connect.errors import CommandError, note, report, usage
from kpybroker.client.connect.settings import Settings
from kpybroker.client.records.json_lines import BadLine, dumped
from kpybroker.client.records.record import JsonText, Record

if TYPE_CHECKING:
    from kpybroker.client.schemas.values import Values

EXTRA: Final = "pip install 'kpybroker[schemas]'"
REPORTED_MAX: Final = 10
"""Records that get a line each; the others are counted."""
FIELDS: Final = {"value": ("value",), "key": ("key",), "both": ("key", "value")}
"""What `--decode` names."""


class SchemaOptions(NamedTuple):
    """What `topic produce` is asked for: an id or a subject for each, and a message of a Protobuf value."""

    value: str | None = None
    key: str | None = None
    message: str | None = None

    @property
    def fields(self) -> frozenset[str]:
        """What is encoded."""
        return frozenset(name for name in ("key", "value") if getattr(self, name) is not None)


def values_of(settings: Settings) -> Values:
    """The schemas of the registry that the settings name. Raises CommandError."""
    if settings.registry is None:
        raise usage(
            "no schema registry is named",
            "name it: --schema-registry URL, KPYBROKER_SCHEMA_REGISTRY, or schema.registry.url of a profile",
        )
    try:
        from kpybroker.client.schemas.http import check_address
        from kpybroker.client.schemas.registry import Registry
        from kpybroker.client.schemas.values import Values
    except ModuleNotFoundError as error:
        raise without_extra(error) from None
    url, login = settings.registry
    return Values(Registry(check_address("--schema-registry", url), login=login))


def without_extra(error: ModuleNotFoundError) -> CommandError:
    """What to install, for a package that is missing."""
    package = (error.name or "").partition(".")[0]
    return usage(f"a schema registry needs {package}, which is not installed", EXTRA)


class Decoder:
    """Decodes records. One that is not of a schema stays as it is, is reported, and counts as failed."""

    def __init__(self, values: Values, fields: str) -> None:
        self._values = values
        self._fields = FIELDS[fields]
        self._fixes: dict[str, None] = {}
        self.failed = 0

    def __call__(self, record: Record) -> Record:
        """The record, with JSON for what was decoded. Raises CommandError where the registry is away."""
        from kpybroker.client.schemas.registry import Away

        for name in self._fields:
            data = getattr(record, name)
            if data is None:
                continue
            try:
                decoded = JsonText(dumped(self._values.read(data)))
            except Away:
                raise
            except ModuleNotFoundError as error:
                raise without_extra(error) from None
            except CommandError as error:
                self._failed(record, name, error)
            else:
                record = record._replace(value=decoded) if name == "value" else record._replace(key=decoded)
        return record

    def _failed(self, record: Record, name: str, error: CommandError) -> None:
        self.failed += 1
        self._fixes.setdefault(error.fix)
        if self.failed <= REPORTED_MAX:
            where = f"{record.topic}-{record.partition} at offset {record.offset}"
            report(f"the {name} of {where} is not decoded: {error.cause}")

    def finish(self) -> int:
        """Say how many were not decoded; the exit code."""
        if self.failed:
            note(f"not decoded, and printed as they are: {self.failed}")
        for fix in self._fixes:
            note(f"fix: {fix}")
        return int(bool(self.failed))


def encoder(settings: Settings, options: SchemaOptions) -> Callable[[Record], Record]:
    """The function that encodes a record, whose schemas are there. Raises CommandError; the function raises BadLine."""
    values = values_of(settings)
    try:
        numbers = {name: values.number(getattr(options, name)) for name in sorted(options.fields)}
        for name, number in numbers.items():
            values.codec(number, options.message if name == "value" else None)
    except ModuleNotFoundError as error:
        raise without_extra(error) from None

    def encode(record: Record) -> Record:
        for name, number in numbers.items():
            data = getattr(record, name)
            if data is None:
                continue
            try:
                value = json.loads(data)
                encoded = b"" if value is None else values.write(number, _message(name), value)
            except (ValueError, RecursionError) as error:
                raise BadLine(f"its {name} is no JSON: {error}") from None
            except CommandError as error:
                raise BadLine(f"its {name} cannot be written: {error.cause}") from None
            made = None if value is None else encoded
            record = record._replace(value=made) if name == "value" else record._replace(key=made)
        return record

    def _message(name: str) -> str | None:
        return options.message if name == "value" else None

    return encode
