"""Files are printed, and refused, as by Confluent's registry.

`confluent_8_1_0_protobuf.jsonl` has what a registry of Confluent 8.1.0 stores for some hundred files, without and with
`normalize=true`; null where it refuses one.
"""

from __future__ import annotations

from kpybroker.registry.schemas import protobuf
from tests.registry.schemas.proto.confluent import different, table

TEXTS = table("protobuf")


def test_texts_are_those_of_confluent() -> None:
    assert different(TEXTS) == []
    assert len(TEXTS) > 300


def test_what_is_printed_is_printed_the_same_again() -> None:
    for _, text, _ in TEXTS:
        if text is not None:
            assert protobuf.parse(text, {}).canonical == text
