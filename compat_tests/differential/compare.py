"""Two plays, step by step and field by field; what differs and is not allowed is shown with its path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compat_tests.differential.allowed import ANYTHING, MISSING, Allowed, Difference
from compat_tests.differential.play import GAVE_UP, Heard
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode

SHOWN_MAX = 25


def differences(
    script: str, kafka: Sequence[Heard], ours: Sequence[Heard], intended: Sequence[Allowed]
) -> list[Difference]:
    """Those that no entry of `intended` covers."""
    found: list[Difference] = []
    for theirs, mine in zip(kafka, ours, strict=True):
        if GAVE_UP in theirs.response:  # ours too, or else they differ anyway
            found.append(Difference(theirs.label, None, GAVE_UP, theirs.response[GAVE_UP], ANYTHING))
        found.extend(_compare(theirs.label, theirs.api, "", theirs.response, mine.response))
    return [one for one in found if not any(allowed.covers(script, one) for allowed in intended)]


def _compare(label: str, api: ApiKey | None, path: str, kafka: Any, ours: Any) -> Iterator[Difference]:
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for key in list(kafka) + [key for key in ours if key not in kafka]:
            inner = f"{path}.{key}".lstrip(".")
            yield from _compare(label, api, inner, kafka.get(key, MISSING), ours.get(key, MISSING))
    elif isinstance(kafka, list) and isinstance(ours, list):
        for index in range(max(len(kafka), len(ours))):
            pair = (kafka[index] if index < len(kafka) else MISSING, ours[index] if index < len(ours) else MISSING)
            yield from _compare(label, api, f"{path}[{index}]", *pair)
    elif kafka != ours or type(kafka) is not type(ours):
        yield Difference(label, api, path, kafka, ours)


def report(found: Sequence[Difference]) -> str:
    lines = []
    label = None
    for one in found[:SHOWN_MAX]:
        if one.label != label:
            label = one.label
            lines.append(label)
        lines.append(f"    {one.path}: kafka {_shown(one.path, one.kafka)}, kpybroker {_shown(one.path, one.ours)}")
    if len(found) > SHOWN_MAX:
        lines.append(f"    ... and {len(found) - SHOWN_MAX} more")
    return "\n".join(lines)


def _shown(path: str, value: Any) -> str:
    if path.endswith("error_code") and isinstance(value, int):
        return f"{value} {ErrorCode(value).name}"
    return repr(value)
