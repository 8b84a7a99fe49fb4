"""`reply`: from a question to its reply, with the parsers. Pure, and of a worker process alone."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import Any, Final

from kpybroker.registry.compatibility import check
from kpybroker.registry.errors import RegistryError
from kpybroker.registry.schemas.model import Parsed
from kpybroker.registry.schemas.parse import parse
from kpybroker.registry.texts.questions import (
    CHECK_NAMES,
    COMPARE,
    FORMAT,
    IDENTIFY,
    NORMALIZE,
    OWN,
    READ,
    Question,
    Reply,
    Source,
    hash_of,
    refused,
)

KEPT_MAX: Final = 64
KEPT_CHARACTERS_MAX: Final = 20_000
"""Of one text: comparing one with a hundred earlier ones parses it once."""


class Replies:
    """What one process knows already: schemas that it parsed, if they are small."""

    def __init__(self) -> None:
        self._parsed: OrderedDict[str, Parsed] = OrderedDict()

    def reply(self, question: Question) -> Reply:
        """Never raises for what a text can be, except MemoryError."""
        try:
            return Reply(self._value(question))
        except RegistryError as error:
            return Reply(None, error.code, error.message)
        except RecursionError:
            return refused("it is nested too deep")

    def _value(self, question: Question) -> Any:
        first = question.sources[0]
        if question.what == READ:
            return self._read(first).canonical
        if question.what == NORMALIZE:
            return self._read(first).normalized
        if question.what == FORMAT:
            return self._read(first).formatted(str(question.details[0]))
        if question.what == IDENTIFY:
            side, is_normalized = question.details
            return self._identity(first, str(side), is_normalized=bool(is_normalized))
        if question.what == CHECK_NAMES:
            self._read(first).check_names()
            return None
        assert question.what == COMPARE
        level, version = question.details
        earlier = check.Earlier(int(version), self._read(question.sources[1]))
        return check.check(str(level), self._read(first), [earlier])

    def _identity(self, source: Source, side: str, *, is_normalized: bool) -> list[str]:
        parsed = self._read(source)
        identity = parsed.identity
        found = set(identity.own if side == OWN else identity.sought)
        if is_normalized:
            with suppress(RegistryError):  # one that cannot be normalized is still the same as it is
                found.add(f"normalized {parsed.normalized}")
        return [hash_of(source.kind, one) for one in sorted(found)]

    def _read(self, source: Source) -> Parsed:
        found = self._parsed.get(source.digest)
        if found is None:
            found = parse(source.kind, source.text, source.references, is_new=source.is_new)
            if sum(map(len, (source.text, *source.references.values()))) <= KEPT_CHARACTERS_MAX:
                self._parsed[source.digest] = found
            while len(self._parsed) > KEPT_MAX:
                self._parsed.popitem(last=False)
        else:
            self._parsed.move_to_end(source.digest)
        return found
