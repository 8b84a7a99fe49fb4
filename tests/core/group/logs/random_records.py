"""Records of two groups, of every kind and in any order, for tests of what is read back."""

from __future__ import annotations

from hypothesis import strategies as st

from kpybroker.core.consumer_group.members import ClassicMetadata, CurrentAssignment, MemberMetadata, MemberState
from kpybroker.core.consumer_group.records import (
    ConsumerRecord,
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    PartitionMetadataRecord,
    PatternRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kpybroker.core.consumer_group.values import ResolvedPattern
from kpybroker.core.group.records import GroupRecord, OffsetRecord, StoredGroup
from kpybroker.core.modern_group.records import GroupEpoch, TargetEpoch
from kpybroker.core.offsets.values import OffsetAndMetadata

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
GROUPS = st.sampled_from(["g", "h"])
MEMBERS = st.sampled_from(["a", "b", "c"])
TOPIC_IDS = st.sampled_from([b"1" * 16, b"2" * 16])
NAMES = st.frozensets(st.sampled_from(["t", "u", "v"]))
PATTERNS = st.sampled_from(["t.*", "u"])
TEXTS = st.none() | st.sampled_from(["", "x", "\N{SNOWMAN}"])

PARTITIONS = st.dictionaries(TOPIC_IDS, st.frozensets(st.integers(0, 3)), max_size=2)
EPOCHS = st.dictionaries(TOPIC_IDS, st.dictionaries(st.integers(0, 3), st.integers(0, 9), max_size=3), max_size=2)
METADATA = st.builds(
    MemberMetadata,
    instance_id=st.none() | st.sampled_from(["i", "j"]),
    rack_id=TEXTS,
    client_id=st.sampled_from(["", "c"]),
    client_host=st.sampled_from(["", "/h"]),
    topic_names=NAMES,
    pattern=st.none() | st.just("") | PATTERNS,
    rebalance_timeout_ms=INT32,
    server_assignor=st.none() | st.sampled_from(["contiguous", "first", "gone"]),
    classic=st.none() | st.builds(ClassicMetadata, INT32, st.just((("range", b"\0\1"),))),
)
CURRENT = st.builds(
    CurrentAssignment,
    member_epoch=st.integers(-2, 9),
    previous_member_epoch=st.integers(-2, 9),
    state=st.sampled_from(MemberState),
    assigned=EPOCHS,
    pending_revocation=EPOCHS,
)

CONSUMER_RECORDS: st.SearchStrategy[ConsumerRecord] = st.one_of(
    st.builds(GroupEpochRecord, GROUPS, st.none() | st.builds(GroupEpoch, st.integers(0, 9), INT64)),
    st.builds(PartitionMetadataRecord, GROUPS, st.sampled_from([None, True])),
    st.builds(MemberRecord, GROUPS, MEMBERS, st.none() | METADATA),
    st.builds(TargetEpochRecord, GROUPS, st.none() | st.builds(TargetEpoch, st.integers(-1, 9), INT64)),
    st.builds(TargetRecord, GROUPS, MEMBERS, st.none() | PARTITIONS),
    st.builds(CurrentRecord, GROUPS, MEMBERS, st.none() | CURRENT),
    st.builds(PatternRecord, GROUPS, PATTERNS, st.none() | st.builds(ResolvedPattern, NAMES, INT64, INT64)),
)
ALL_RECORDS = st.one_of(
    CONSUMER_RECORDS,
    CONSUMER_RECORDS,
    st.builds(
        GroupRecord,
        GROUPS,
        st.none()
        | st.builds(StoredGroup, st.just("consumer"), st.just(3), *([st.none()] * 2), st.just(1), st.just(())),
    ),
    st.builds(
        OffsetRecord,
        GROUPS,
        st.just(("t", 0)),
        st.none() | st.builds(OffsetAndMetadata, st.just(1), st.just(-1), st.just(""), st.just(1)),
    ),
)
