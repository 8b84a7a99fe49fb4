"""Files are printed, and refused, as by Confluent's registry.

`confluent_8_1_0_protobuf.jsonl` has what a registry of Confluent 8.1.0 stores for some hundred files, without and with
`normalize=true`; null where it refuses one.
"""

from __future__ import annotations

import json
from pathlib import Path

from kpybroker.registry.errors import RegistryError
from kpybroker.registry.schemas import protobuf

TEXTS = [
    json.loads(line)
    for line in (Path(__file__).parent / "confluent_8_1_0_protobuf.jsonl").read_text(encoding="utf-8").splitlines()
]


def stored_of(text: str) -> list[str | None]:
    """What is stored for a text, without and with normalization."""
    try:
        parsed = protobuf.parse(text, {}, is_new=True)
    except RegistryError:
        return [None, None]
    return [parsed.canonical, parsed.normalized]


def test_texts_are_those_of_confluent() -> None:
    different = [(text, *found, *stored) for text, *stored in TEXTS if (found := stored_of(text)) != stored]
    assert different == []
    assert len(TEXTS) > 300


def test_what_is_printed_is_printed_the_same_again() -> None:
    for _, text, _ in TEXTS:
        if text is not None:
            assert protobuf.parse(text, {}).canonical == text
