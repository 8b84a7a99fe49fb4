"""Descriptors in base64 are printed as by Confluent's registry.

`confluent_8_1_0_descriptors.jsonl` has what a registry of Confluent 8.1.0 stores for them, without and with
`normalize=true`.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from kpybroker.registry.errors import RegistryError
from kpybroker.registry.schemas import protobuf

TEXTS = [
    json.loads(line)
    for line in (Path(__file__).parent / "confluent_8_1_0_descriptors.jsonl").read_text(encoding="utf-8").splitlines()
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
    assert len(TEXTS) > 100


@pytest.mark.parametrize(
    "file",
    [
        {"message_type": [{"name": "M", "field": [{"name": "a", "number": 1, "type": 5, "oneof_index": 3}]}]},
        {"message_type": [{"name": "M", "field": [{"name": "a", "number": 1, "type": 11, "type_name": ".Nothing"}]}]},
    ],
)
def test_a_descriptor_that_is_no_file_is_refused(file: dict[str, object]) -> None:
    sent = base64.b64encode(FileDescriptorProto(**file).SerializeToString()).decode()
    with pytest.raises(RegistryError) as caught:
        protobuf.parse(sent, {}, is_new=True)
    assert caught.value.code == 42201
