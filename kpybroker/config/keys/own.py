"""Keys of kpybroker that Kafka does not have. Rows as in `keys.definition`."""

from __future__ import annotations

from typing import Final

from kpybroker.config.keys.definition import LOW, READ_ONLY, Row
from kpybroker.config.keys.status import HONOURED
from kpybroker.config.shortcuts import ALL
from kpybroker.config.values import ANYTHING, BOOLEAN, LIST, STRING, list_of

ROWS: Final[tuple[Row, ...]] = (
    ("kpybroker.validate.records", BOOLEAN, "false", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("kpybroker.jaas.config.file", STRING, None, ANYTHING, LOW, READ_ONLY, HONOURED),
    ("kpybroker.shortcuts", LIST, "all", list_of("all", "none", *sorted(ALL)), LOW, READ_ONLY, HONOURED),
)
