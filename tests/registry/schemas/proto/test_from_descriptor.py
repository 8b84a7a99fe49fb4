"""Descriptors in base64 are printed as by Confluent's registry.

`confluent_8_1_0_descriptors.jsonl` has what a registry of Confluent 8.1.0 stores for them, without and with
`normalize=true`.
"""

from __future__ import annotations

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from kpybroker.registry.errors import RegistryError
from kpybroker.registry.schemas import protobuf
from tests.registry.schemas.proto.confluent import different, table

TEXTS = table("descriptors")


def test_texts_are_those_of_confluent() -> None:
    assert different(TEXTS) == []
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
