"""Why a method was refused."""

from __future__ import annotations

from collections.abc import Iterable


class ControlError(Exception):
    """The cause in one line and its fix in another. `status` is HTTP's: 400 for the caller's mistake, 409 for a state
    in which the method does not work, 408 for a wait that ended without what it waited for."""

    def __init__(self, cause: str, fix: str, status: int = 400) -> None:
        super().__init__(cause)
        self.cause = cause
        self.fix = fix
        self.status = status


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The fix for a name that does not exist: the nearest that does, or all of them."""
    import difflib

    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"one of {', '.join(names)}" if names else "leave it out"
