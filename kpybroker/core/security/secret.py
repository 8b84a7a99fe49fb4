"""Values that must not appear in a log, an error, a repr or a dump."""

from __future__ import annotations

STARS = "[hidden]"
"""Kafka's ``Password.HIDDEN``."""


class Secret:
    """A password, key or token. Only `reveal()` returns it; `repr`, `str`, `format` and `%s` print `[hidden]`.

    It is no `str`, so that JSON encoders, joins and concatenations raise `TypeError` instead of showing it. It cannot
    be pickled. Two secrets are equal if their values are; the comparison is for tests and configuration, not for
    checking a login (use `hmac.compare_digest` on the revealed values).
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return STARS

    def __format__(self, spec: str) -> str:
        return format(STARS, spec)

    def __reduce__(self) -> str:
        raise TypeError("A secret cannot be pickled or copied")
