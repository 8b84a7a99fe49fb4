"""A fault rule that makes no sense: why, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable


class FaultError(ValueError):
    """The cause in one line, and its fix."""

    def __init__(self, cause: str, fix: str) -> None:
        super().__init__(f"{cause}: {fix}")
        self.cause = cause
        self.fix = fix


LISTED_MAX = 20
"""So many names are listed where none of them is near."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The fix for a name that does not exist: the nearest one that does, or all of them if they are few."""
    import difflib

    names = sorted(known)
    folded = {one.lower(): one for one in names}
    near = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    if near:
        return f"did you mean `{folded[near[0]]}`?"
    if len(names) > LISTED_MAX:
        return f"one of {len(names)} names, such as `{names[0]}`"
    return f"one of {', '.join(f'`{one}`' for one in names)}"
