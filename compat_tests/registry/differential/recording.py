"""What Confluent's registry responded to the conversations: read from a file, so that no reference is needed.

`python -m compat_tests.registry.differential.recording URL` writes the file again, from an empty registry at URL.
"""

from __future__ import annotations

import lzma
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from compat_tests.registry.differential.conversations import ALL
from compat_tests.registry.differential.play import Player, Response
from compat_tests.registry.differential.step import Conversation

FILE: Final = Path(__file__).with_name("recorded.xz")
START: Final = "= "
"""Of the line with a conversation's name; a line for each response follows."""

Responses = Mapping[str, Sequence[Response]]


def played(url: str, conversations: Iterable[Conversation] = ALL) -> dict[str, list[Response]]:
    """The responses of the registry at `url`, by conversation."""
    player = Player(url)
    try:
        return {one.name: player.play(one) for one in conversations}
    finally:
        player.close()


def recorded() -> dict[str, list[Response]]:
    """Those of the reference."""
    found: dict[str, list[Response]] = {}
    current: list[Response] = []
    for line in lzma.decompress(FILE.read_bytes()).decode().splitlines():
        if line.startswith(START):
            current = found.setdefault(line.removeprefix(START), [])
        else:
            current.append(Response.of(line))
    return found


def record(responses: Responses) -> None:
    """Write the file."""
    lines = [line for name, made in responses.items() for line in (START + name, *(one.line for one in made))]
    FILE.write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode()))


if __name__ == "__main__":
    record(played(sys.argv[1]))
