"""Files of a log directory that a crash or a stranger has damaged, and the nodes of the tree."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from kpybroker.storage.disk import checkpoints
from kpybroker.storage.disk.errors import StorageError
from kpybroker.storage.disk.files import write_all
from kpybroker.storage.disk.names import parse_dir_name
from kpybroker.storage.log.producer_snapshots import decode_snapshot
from kpybroker.wire.crc import crc32c
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.znodes import brokers, security, settings, topics
from kpybroker.wire.znodes.jackson import ZnodeError
from tests.fuzz.target import Target, of_text, texts
from tests.fuzz.targets.records import batches
from tests.support.storage.batches import open_log
from tests.support.storage.lossy_files import LossyFiles

PATH = "/data/file"
LOG_FILES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
BASE = "0" * 20


def checkpoint(data: bytes) -> None:
    """A byte for the kind of file."""
    if not data:
        return
    kind = CHECKPOINTS[data[0] % len(CHECKPOINTS)]
    kind(data[1:])


CHECKPOINTS: tuple[Callable[[bytes], object], ...] = (
    lambda data: checkpoints.decode_offsets(data, PATH),
    lambda data: checkpoints.decode_leader_epochs(data, PATH),
    lambda data: checkpoints.decode_partition_metadata(data, PATH),
    checkpoints.decode_clean_shutdown,
    lambda data: checkpoints.decode_meta_properties(data, PATH),
)


def checkpoint_files() -> Iterable[bytes]:
    for number, text in enumerate(
        (
            "0\n1\ntopic 0 17\n",
            "0\n2\n0 0\n3 17\n",
            "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
            '{"version":0,"brokerEpoch":1}',
            "version=0\nbroker.id=1\ncluster.id=abcdefghijklmnopqrstuv\n",
        )
    ):
        yield bytes((number,)) + text.encode()


def snapshot(data: bytes) -> None:
    """With the checksum that it should have."""
    decode_snapshot(data[:2] + struct.pack(">I", crc32c(data[6:])) + data[6:])


def log(data: bytes) -> None:
    """A partition whose files hold anything at all opens, stopped in order or not, and takes a record.

    Bytes for: whether it was stopped in order, and the sizes of four of the five files.
    """
    if len(data) < 5:
        return
    files = LossyFiles()
    directory = "/data/t-0"
    files.mkdir("/data")
    files.mkdir(directory)
    at = 5
    for suffix, size in zip(LOG_FILES, [len(data), *data[1:5]], strict=True):
        if suffix == ".log":
            size = len(data) - 5 - sum(data[1:5])
        part = data[at : at + max(size, 0)]
        at += max(size, 0)
        if part or suffix == ".log":
            write_all(files.open(f"{directory}/{BASE}{suffix}", create=True), part, 0)
    opened = open_log(files, directory, had_clean_shutdown=bool(data[0] & 1))
    opened.close()


def partitions() -> Iterable[bytes]:
    for clean in (0, 1):
        for batch in batches():
            yield bytes((clean, 0, 0, 0, 0)) + batch
            yield bytes((clean, 8, 12, 0, 0)) + batch + bytes(8) + bytes(12)


ZNODES: tuple[Callable[[bytes], object], ...] = (
    brokers.decode_controller,
    brokers.decode_number,
    brokers.decode_cluster_id,
    lambda data: brokers.decode_broker(1, data),
    lambda data: topics.decode_topic("t", data),
    topics.decode_partition_state,
    topics.decode_partitions,
    topics.decode_log_dir_event,
    topics.decode_reassignment,
    settings.decode_config,
    settings.decode_config_change,
    settings.decode_producer_id_block,
    settings.decode_features,
    security.decode_acls,
    lambda data: security.decode_acl_change(True, data),
    lambda data: security.decode_acl_change(False, data),
    security.decode_delegation_token,
)


def znode(data: bytes) -> None:
    """A byte for the kind of node."""
    if data:
        ZNODES[data[0] % len(ZNODES)](data[1:])


def znodes() -> Iterable[bytes]:
    nodes = (
        '{"version":1,"brokerid":1,"timestamp":"1"}',
        "7",
        '{"version":"1","id":"abc"}',
        '{"version":5,"host":"h","port":1,"jmx_port":-1,"timestamp":"1","endpoints":["PLAINTEXT://h:1"],'
        '"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"features":{"f":{"min_version":0,"max_version":1}},'
        '"rack":"r"}',
        '{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAQ","partitions":{"0":[1,2]},"adding_replicas":{},'
        '"removing_replicas":{}}',
        '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}',
        '{"version":1,"partitions":[{"topic":"t","partition":0}]}',
        '{"version":1,"broker":1,"event":1}',
        '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}',
        '{"version":1,"config":{"a":"b"}}',
        '{"version":2,"entity_path":"topics/t"}',
        '{"version":1,"broker":0,"block_start":"0","block_end":"999"}',
        '{"version":2,"status":1,"features":{"group.version":1}}',
        '{"version":1,"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Read","host":"*"}]}',
        '{"version":1,"resourceType":"Topic","name":"t","resourcePatternType":"PREFIXED"}',
        "Topic:t",
        '{"version":1,"owner":"User:a","renewers":[],"issueTimestamp":1,"maxTimestamp":2,"expiryTimestamp":2,'
        '"tokenId":"x","version":3}',
    )
    return [bytes((number,)) + text.encode() for number, text in enumerate(nodes)]


TARGETS = (
    Target("checkpoints", checkpoint, (StorageError,), checkpoint_files, ("kpybroker.storage.disk.checkpoints",)),
    Target(
        "producer-snapshots",
        snapshot,
        (StorageError,),
        lambda: [bytes((0, 1)) + bytes(4) + struct.pack(">i", 0)],
        ("kpybroker.storage.log.producer_snapshots",),
    ),
    Target(
        "log",
        log,
        (KafkaError, StorageError, OSError),
        partitions,
        ("kpybroker.storage.log", "kpybroker.storage.segments"),
    ),
    Target(
        "directory-names",
        of_text(parse_dir_name),
        (KafkaError, StorageError, ValueError),
        texts("/data/t-0", "/data/t-1.0123456789abcdef0123456789abcdef-delete", "/data/__consumer_offsets-49"),
        ("kpybroker.storage.disk.names",),
    ),
    Target("znodes", znode, (ZnodeError,), znodes, ("kpybroker.wire.znodes",)),
)
