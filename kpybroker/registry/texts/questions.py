"""What can be asked of a text. A question and its reply are plain values: they are sent as JSON, and are hashed."""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from kpybroker.registry.errors import RegistryError, invalid_schema
from kpybroker.registry.schemas.model import Texts

READ: Final = "read"
"""The reply is the canonical text."""
NORMALIZE: Final = "normalize"
"""The reply is the normalized text."""
FORMAT: Final = "format"
"""The reply is the text in another format."""
IDENTIFY: Final = "identify"
"""The reply is a list of hashes: one side of the schema's `Identity`, and its normalized text if that counts too."""
OWN: Final = "own"
SOUGHT: Final = "sought"
CHECK_NAMES: Final = "check names"
"""The reply is nothing, or 42201 for a name that a new schema cannot have."""
COMPARE: Final = "compare"
"""The reply is the list of reasons why a schema may not follow another one."""


FIXED_BYTES: Final = 300
"""Of a reply that is kept, with its key."""


class Source:
    """A text with the texts of all that it refers to. `is_new` also checks what earlier registries accepted."""

    def __init__(self, kind: str, text: str, references: Texts, *, is_new: bool = False) -> None:
        self.kind = kind
        self.text = text
        self.references = references
        self.is_new = is_new

    @cached_property
    def digest(self) -> str:
        """Equal for equal sources."""
        others = itertools.chain.from_iterable(self.references.items())
        return hash_of(self.kind, self.text, str(self.is_new), *others)

    def packed(self) -> list[Any]:
        """As a JSON value."""
        return [self.kind, self.text, dict(self.references), self.is_new]


def unpacked(value: Sequence[Any]) -> Source:
    """What `Source.packed` made."""
    kind, text, references, is_new = value
    return Source(kind, text, references, is_new=is_new)


class Question:
    """`what` is one of those above, `details` are plain values, `sources` the texts."""

    def __init__(self, what: str, sources: Sequence[Source], *details: str | int) -> None:
        self.what = what
        self.sources = sources
        self.details = details

    @cached_property
    def key(self) -> str:
        """Equal for equal questions."""
        return hash_of(self.what, *(source.digest for source in self.sources), *map(str, self.details))

    def message(self) -> bytes:
        """For a worker."""
        return _json({"what": self.what, "sources": [one.packed() for one in self.sources], "details": self.details})


def read_question(message: bytes) -> Question:
    """What `Question.message` made."""
    value = json.loads(message)
    return Question(value["what"], [unpacked(one) for one in value["sources"]], *value["details"])


class Reply(NamedTuple):
    """`value` is a JSON value; or `code` and `why` are those of a `RegistryError`."""

    value: Any = None
    code: int = 0
    why: str = ""

    @property
    def size(self) -> int:
        """About how much memory it takes, in bytes."""
        parts = self.value if isinstance(self.value, list) else [self.value]
        return sys.getsizeof(self.why) + sum(map(sys.getsizeof, parts)) + FIXED_BYTES

    def got(self) -> Any:
        """The value. Raises RegistryError."""
        if self.code:
            raise RegistryError(self.code, self.why)
        return self.value

    def message(self) -> bytes:
        """For the registry."""
        return _json(list(self))


def read_reply(message: bytes) -> Reply:
    """What `Reply.message` made. Raises ValueError."""
    value, code, why = json.loads(message)
    return Reply(value, int(code), str(why))


def refused(why: str) -> Reply:
    """The reply for a text that is no schema, or takes too much."""
    error = invalid_schema(why)
    return Reply(None, error.code, error.message)


class Unknown(Exception):
    """Raised by a rule that needs replies which are not known: the request is run again when they are."""

    def __init__(self, questions: Iterable[Question]) -> None:
        super().__init__()
        self.questions = list(questions)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def hash_of(*parts: str) -> str:
    """Equal for equal parts."""
    made = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass")
        made.update(len(content).to_bytes(8))
        made.update(content)
    return made.hexdigest()
