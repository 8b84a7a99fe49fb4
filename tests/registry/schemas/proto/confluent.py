"""What a registry of Confluent 8.1.0 stores for a text, as tables, and what ours does."""

from __future__ import annotations

import json
from pathlib import Path

from kpybroker.registry.errors import RegistryError
from kpybroker.registry.schemas import protobuf


def table(name: str) -> list[list[str | None]]:
    """A text, and what is stored for it without and with `normalize=true`; null where it is refused."""
    file = Path(__file__).with_name(f"confluent_8_1_0_{name}.jsonl")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def stored_of(text: str) -> list[str | None]:
    """What is stored for a text, without and with normalization."""
    try:
        parsed = protobuf.parse(text, {}, is_new=True)
    except RegistryError:
        return [None, None]
    return [parsed.canonical, parsed.normalized]


def different(texts: list[list[str | None]]) -> list[tuple[str | None, ...]]:
    """Texts for which ours stores something else, with both."""
    return [(text, *found, *stored) for text, *stored in texts if (found := stored_of(text or "")) != stored]
