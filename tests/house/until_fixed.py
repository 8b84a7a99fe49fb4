"""What the checks find and someone is fixing: each entry is a finding, without its line number.

An entry that no check finds any more is a finding itself, so that what is fixed leaves the list.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

UNTIL_FIXED: frozenset[str] = frozenset()


def remaining(found: Iterable[str], root: Path, known: Collection[str] = UNTIL_FIXED) -> list[str]:
    """The findings that are not known, and the entries that are no longer needed."""
    findings = list(found)
    keys = [re.sub(r":\d+:", ":", finding.removeprefix(f"{root}/"), count=1) for finding in findings]
    unknown = [finding for finding, key in zip(findings, keys, strict=True) if key not in known]
    fixed = sorted(set(known) - set(keys))
    return unknown + [f"{entry}: is fixed: take it out of tests/house/until_fixed.py" for entry in fixed]
