"""What each scene has found, kept as soon as it is finished: two quiet hours can be spent in parts.

The file has the latest quiet measurement of each scene; the page is made of all of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from compat_tests.bench.ten_thousand.scene import Figures

FILE = Path(__file__).with_name("kept.json")

Found = dict[tuple[str, int], Figures]
"""By kind and size."""


class Kept(NamedTuple):
    """What a scene has found, and under which conditions."""

    conditions: str
    found: Found


def keep(scene: str, measured: Kept) -> None:
    """In place of what was kept of this scene before."""
    every = _read()
    figures = [{"kind": kind, "size": size, "figures": dict(each)} for (kind, size), each in measured.found.items()]
    every[scene] = {"conditions": measured.conditions, "found": figures}
    FILE.write_text(json.dumps(every, indent=1) + "\n")


def kept(scene: str) -> Kept | None:
    """None where it was never measured on a quiet machine."""
    one = _read().get(scene)
    if one is None:
        return None
    return Kept(one["conditions"], {(each["kind"], each["size"]): each["figures"] for each in one["found"]})


def _read() -> dict[str, Any]:
    every: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return every
