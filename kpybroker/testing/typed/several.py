"""Several of something: what a list may be given for, and a text, bytes or a mapping may not.

A text is a sequence of texts for type checkers, so that `Sequence[str]` takes one where a list of names is meant. These
types do not; at run time `checking.kinds` refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Set, ValuesView
from typing import Protocol, SupportsIndex, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Listed(Protocol[T_co]):
    """A list, tuple, or another sequence, but no text and no mapping: these refuse to look for a number, and to have a
    first item.
    """

    def __contains__(self, value: object, /) -> bool: ...

    def __getitem__(self, index: SupportsIndex, /) -> T_co: ...

    def __iter__(self) -> Iterator[T_co]: ...

    def __len__(self) -> int: ...

    def __reversed__(self) -> Iterator[T_co]: ...


Several = Listed[T] | Set[T]
"""A list, tuple or set."""
Many = Listed[T] | Set[T] | Iterator[T] | ValuesView[T]
"""What has one after the other, read once: also a generator."""
