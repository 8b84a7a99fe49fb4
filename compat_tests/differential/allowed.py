"""The differences from Kafka 3.9.1 that are meant. Each has its reason, and stands in docs/GUARANTEES.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kpybroker.wire.api import ApiKey


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two answers are not equal."""

    label: str
    api: ApiKey | None
    path: str
    kafka: Any
    ours: Any


@dataclass(frozen=True, slots=True)
class Allowed:
    """`path` is a regular expression over the whole path; `scripts` one over the script's name."""

    why: str
    path: str
    api: ApiKey | None = None
    scripts: str = ".*"

    def covers(self, script: str, difference: Difference) -> bool:
        return (
            (self.api is None or self.api is difference.api)
            and re.fullmatch(self.path, difference.path) is not None
            and re.fullmatch(self.scripts, script) is not None
        )


ALLOWED: tuple[Allowed, ...] = ()
