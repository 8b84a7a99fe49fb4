"""A handler's statement of what it serves; `docs/reference/compatibility.md` is generated from these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kpybroker.wire.api import ApiKey


@dataclass(frozen=True, slots=True)
class Ledger:
    """Versions `min_version..max_version` of one API are served completely.

    `versions` says in a few words what each version added; `absent` names what is deliberately not there.
    """

    api_key: ApiKey
    min_version: int
    max_version: int
    versions: Mapping[int, str] = field(default_factory=dict)
    absent: str = ""
