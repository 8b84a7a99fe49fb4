"""Inputs that once broke a rule, by target: each is played in `make test`."""

from __future__ import annotations

from pathlib import Path

FOUND = Path(__file__).with_name("found")


def played(name: str) -> list[bytes]:
    """Those of a target; a line that begins with `#` says what was wrong."""
    file = FOUND / f"{name}.txt"
    if not file.exists():
        return []
    return [bytes.fromhex(line) for line in file.read_text().splitlines() if not line.startswith("#")]


def keep(name: str, data: bytes) -> None:
    """Among those that `make test` runs."""
    with (FOUND / f"{name}.txt").open("a") as file:
        file.write(data.hex() + "\n")
