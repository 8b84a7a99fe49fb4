"""Text files of a log directory, byte for byte as Kafka writes them, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.replication.leader_epochs import EpochEntry
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.disk.checkpoints import (
    MetaProperties,
    decode_clean_shutdown,
    decode_leader_epochs,
    decode_meta_properties,
    decode_offsets,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_leader_epochs,
    encode_meta_properties,
    encode_offsets,
    encode_partition_metadata,
    uuid_from_text,
    uuid_to_text,
)
from kpybroker.storage.disk.errors import CorruptCheckpointError

TOPIC_ID = bytes(range(16))


def test_an_offset_checkpoint() -> None:
    data = encode_offsets({TopicPartition("t", 0): 5, TopicPartition("u-x.y", 12): 2**40})
    assert data == b"0\n2\nt 0 5\nu-x.y 12 1099511627776\n"
    assert decode_offsets(data, "") == {("t", 0): 5, ("u-x.y", 12): 2**40}
    assert encode_offsets({}) == b"0\n0\n"


def test_a_leader_epoch_checkpoint() -> None:
    entries = [EpochEntry(0, 0), EpochEntry(3, 17)]
    assert encode_leader_epochs(entries) == b"0\n2\n0 0\n3 17\n"
    assert decode_leader_epochs(b"0\n2\n0 0\n3 17\n", "") == entries


@pytest.mark.parametrize("data", [b"", b"0\n0\n"])
def test_an_empty_checkpoint_has_no_entries(data: bytes) -> None:
    """Kafka creates them empty."""
    assert decode_offsets(data, "") == {}
    assert decode_leader_epochs(data, "") == []


def test_partition_metadata_has_no_newline_at_its_end() -> None:
    data = encode_partition_metadata(TOPIC_ID)
    assert data == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert decode_partition_metadata(data, "") == TOPIC_ID


@given(st.binary(min_size=16, max_size=16))
def test_uuids_round_trip(value: bytes) -> None:
    assert uuid_from_text(uuid_to_text(value)) == value
    assert "=" not in uuid_to_text(value)


def test_the_clean_shutdown_marker() -> None:
    assert encode_clean_shutdown(17) == b'{"version":0,"brokerEpoch":17}'
    assert decode_clean_shutdown(b'{"version":0,"brokerEpoch":17}') == 17
    assert decode_clean_shutdown(b"") is None
    assert decode_clean_shutdown(b"{}") is None
    assert decode_clean_shutdown(b"[1]") is None
    assert decode_clean_shutdown(b"[" * 100_000) is None


def test_meta_properties_of_zookeeper_mode() -> None:
    meta = MetaProperties("4L6g3nShT-eMCtK--X86sw", 3)
    data = encode_meta_properties(meta)
    assert data == b"version=0\ncluster.id=4L6g3nShT-eMCtK--X86sw\nbroker.id=3\n"
    assert decode_meta_properties(data, "") == meta


def test_meta_properties_as_kafka_writes_them() -> None:
    data = b"#\n#Sat Nov 21 01:40:55 UTC 2026\nbroker.id=3\nversion=0\ncluster.id=abc\nx.y=z\n"
    data += b"directory.id=f9cLsCQKTAedKFzOeE9o2w\n"
    meta = decode_meta_properties(data, "")
    assert meta == MetaProperties("abc", 3, "f9cLsCQKTAedKFzOeE9o2w", 0, {"x.y": "z"})
    assert decode_meta_properties(encode_meta_properties(meta), "") == meta


def test_meta_properties_of_version_1_name_the_node() -> None:
    meta = decode_meta_properties(b"version=1\nnode.id=4\ncluster.id=abc\n", "")
    assert (meta.version, meta.broker_id) == (1, 4)
    assert b"node.id=4" in encode_meta_properties(meta)


@pytest.mark.parametrize("data", [b"", b"# comment\n", b"hello world\n", b"version=0\n", bytes(range(256))])
def test_meta_properties_without_ids_are_read_as_such(data: bytes) -> None:
    meta = decode_meta_properties(data, "")
    assert (meta.cluster_id, meta.broker_id) == (None, None)


def test_an_escaped_backslash_before_u_is_no_escape() -> None:
    assert decode_meta_properties(b"broker.id=0\nx=\\\\u12\n", "").broker_id == 0


@pytest.mark.parametrize(
    ("decode", "data"),
    [
        (decode_offsets, b"1\n0\n"),
        (decode_offsets, b"0\n"),
        (decode_offsets, b"x\n"),
        (decode_offsets, b"0\nx\n"),
        (decode_offsets, b"0\n2\nt 0 5\n"),
        (decode_offsets, b"0\n1\nt 0 5\nt 1 5\n"),
        (decode_offsets, b"0\n1\nt 0\n"),
        (decode_offsets, b"0\n1\nt a 5\n"),
        (decode_offsets, b"\xff"),
        (decode_leader_epochs, b"0\n1\n1\n"),
        (decode_leader_epochs, b"0\n1\n-1 5\n"),
        (decode_leader_epochs, b"0\n1\n1 5 6\n"),
        (decode_partition_metadata, b""),
        (decode_partition_metadata, b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw"),
        (decode_partition_metadata, b"version: 0"),
        (decode_partition_metadata, b"version: 0\ntopic_id: AAEC"),
        (decode_partition_metadata, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"),
        (decode_partition_metadata, b"\xff\xfe"),
        (decode_partition_metadata, b"nonsense"),
        (decode_meta_properties, b"version=2\n"),
        (decode_meta_properties, b"version=x\n"),
        (decode_meta_properties, b"broker.id=x\n"),
        (decode_meta_properties, b"directory.id=zzz\n"),
        (decode_meta_properties, b"broker.id=0\nx=\\u12\n"),
        (decode_meta_properties, b"version=1\n"),
        (decode_meta_properties, b"version=1\nnode.id=0\n"),
    ],
)
def test_a_damaged_file_is_refused(decode: Callable[[bytes, str], object], data: bytes) -> None:
    with pytest.raises(CorruptCheckpointError):
        decode(data, "path")
