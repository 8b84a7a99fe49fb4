"""What a fuzzer runs: a function of bytes that returns, or raises one of the errors its callers know."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

Run = Callable[[bytes], object]


class Target(NamedTuple):
    """`run` gets any bytes at all. `refused` are the errors that say what is wrong with them; any other is a finding.

    `seeds` make the first inputs, good ones. `modules` are those whose coverage is published, as prefixes of names.
    """

    name: str
    run: Run
    refused: tuple[type[Exception], ...]
    seeds: Callable[[], Iterable[bytes]]
    modules: tuple[str, ...]

    def once(self, data: bytes) -> bool:
        """Whether the bytes were taken. Raises what is a finding."""
        try:
            self.run(data)
        except self.refused:
            return False
        return True


def of_text(read: Callable[[str], object]) -> Run:
    """A target that gets text: bytes that are no UTF-8 become replacement characters."""
    return lambda data: read(data.decode("utf-8", "replace"))


def texts(*seeds: str) -> Callable[[], Iterable[bytes]]:
    return lambda: [seed.encode() for seed in seeds]
