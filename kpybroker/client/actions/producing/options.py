"""`ProduceOptions`: what `topic produce` is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class ProduceOptions(NamedTuple):
    """What `topic produce` is asked for. `partition` -1 leaves the choice to the partitioner."""

    topic: str | None = None
    format_name: str = "line"
    key: str | None = None
    key_separator: str | None = None
    delimiter: str = "\\n"
    headers: Sequence[str] = ()
    partition: int | None = None
    compression: str | None = None
    empty_is_null: bool = False
    output_format: str | None = None
    undelivered: str | None = None
    file: str | None = None
    create: bool = False
    schema_registry: str | None = None
    value_schema: str | None = None
    key_schema: str | None = None
    message: str | None = None
