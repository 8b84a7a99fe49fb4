"""Checks of passwords that `test_logins` names as entry points."""

from __future__ import annotations


def check(username: str, password: str) -> bool:
    return password == f"{username}-from-python"


def broken(username: str, password: str) -> bool:
    raise RuntimeError(password)


NO_FUNCTION = 1
