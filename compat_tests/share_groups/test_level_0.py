"""With `share.version` 0 each request of share groups is refused as by Kafka 4.3.1 with the feature off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.conftest import StartBroker
from compat_tests.overload.raw import Raw
from compat_tests.support import quick
from compat_tests.support.groups.serving import QUICK, group_broker
from compat_tests.support.kraft import KraftBroker
from compat_tests.support.waiting import eventually
from kpybroker.storage.inspection.dump_internal import to_plain
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from kpybroker.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from kpybroker.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from kpybroker.wire.messages.list_groups import ListGroupsRequest
from kpybroker.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from kpybroker.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from kpybroker.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from kpybroker.wire.messages.share_fetch import ShareFetchRequest
from kpybroker.wire.messages.share_group_describe import ShareGroupDescribeRequest
from kpybroker.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kpybroker.wire.messages.update_features import UpdateFeaturesRequest
from kpybroker.wire.messages.write_share_group_state import WriteShareGroupStateRequest

pytestmark = pytest.mark.wide

GROUP, TOPIC, MEMBER = "work", "jobs", "0123456789012345678901"
SHARE_APIS = frozenset({*range(76, 80), *range(83, 88), *range(90, 93)})
DOWNGRADE = 2
SETTLE_S = 60.0
TEXTS = ("errorMessage", "acknowledgeErrorMessage")
"""Their words are the brokers' own."""
ID = bytes(15) + b"\1"


def of_state(request: type[Any]) -> Any:
    """One partition of one topic, in the request's own classes."""
    partition = request.PartitionData(partition=0)
    topic = next(value for name, value in vars(request).items() if name.endswith("Data") and name != "PartitionData")
    return request(group_id=GROUP, topics=[topic(topic_id=ID, partitions=[partition])])


def requests() -> list[tuple[Any, int]]:
    """Each API in each version that is not older than Kafka 4.3.1's first, filled as far as it matters."""
    describe, alter = DescribeShareGroupOffsetsRequest, AlterShareGroupOffsetsRequest
    delete = DeleteShareGroupOffsetsRequest
    at = alter.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
    beat = ShareGroupHeartbeatRequest(group_id=GROUP, member_id=MEMBER, subscribed_topic_names=[TOPIC])
    topics = ShareFetchRequest.FetchTopic(topic_id=ID, partitions=[ShareFetchRequest.FetchPartition(partition_index=0)])
    fetch = ShareFetchRequest(group_id=GROUP, member_id=MEMBER, max_wait_ms=0, max_bytes=1000, topics=[topics])
    acknowledge = ShareAcknowledgeRequest(group_id=GROUP, member_id=MEMBER, share_session_epoch=1)
    return [
        (beat, 1),
        (ShareGroupDescribeRequest(group_ids=[GROUP, "other"]), 1),
        *((fetch, version) for version in (1, 2)),
        *((acknowledge, version) for version in (1, 2)),
        (of_state(InitializeShareGroupStateRequest), 0),
        (of_state(ReadShareGroupStateRequest), 0),
        (of_state(WriteShareGroupStateRequest), 0),
        (of_state(DeleteShareGroupStateRequest), 0),
        (of_state(ReadShareGroupStateSummaryRequest), 0),
        (describe(groups=[describe.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)]), 0),
        (
            alter(
                group_id=GROUP,
                topics=[alter.AlterShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=[at])],
            ),
            0,
        ),
        (delete(group_id=GROUP, topics=[delete.DeleteShareGroupOffsetsRequestTopic(topic_name=TOPIC)]), 0),
        (ListGroupsRequest(types_filter=["share"]), 5),
        (FindCoordinatorRequest(key_type=2, coordinator_keys=[f"{GROUP}:AAAAAAAAAAAAAAAAAAAAAQ:0"]), 6),
    ]


def switched_off(bootstrap: str) -> Raw:
    """A connection to a broker whose share groups are off, and whose group coordinator is there."""
    quick.create_topic(bootstrap, TOPIC, 1)
    raw = Raw(("127.0.0.1", int(bootstrap.rpartition(":")[2])))
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="share.version", max_version_level=0, upgrade_type=DOWNGRADE
    )
    response = raw.ask(UpdateFeaturesRequest(feature_updates=[update]), 1)
    assert response.error_code == ErrorCode.NONE, response
    hello = ApiVersionsRequest(client_software_name="test", client_software_version="1")

    def is_off() -> bool:
        found = {one.name: one.max_version_level for one in raw.ask(hello, 4).finalized_features}
        return bool(found.get("share.version", 0) == 0)

    eventually(is_off, "share.version 0", SETTLE_S)
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
    eventually(lambda: raw.ask(find, 4).coordinators[0].error_code == 0, "a coordinator", SETTLE_S)
    loading = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
    eventually(lambda: raw.ask(ListGroupsRequest(), 5).error_code not in loading, "a list of groups", SETTLE_S)
    return raw


def without_texts(value: Any) -> Any:
    """The response without the texts of errors, and whether there are some."""
    if isinstance(value, dict):
        return {
            name: (part is not None) if name in TEXTS else without_texts(part)
            for name, part in value.items()
            if name not in ("throttleTimeMs", "nodeId", "host", "port")
        }
    return [without_texts(part) for part in value] if isinstance(value, list) else value


def said(bootstrap: str) -> dict[str, Any]:
    """All responses by request and version, and which APIs are advertised."""
    with switched_off(bootstrap) as raw:
        hello = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        keys = {one.api_key for one in raw.ask(hello, 4).api_keys} & SHARE_APIS
        found: dict[str, Any] = {"advertised": sorted(keys)}
        for request, version in requests():
            found[f"{type(request).__name__} {version}"] = without_texts(to_plain(raw.ask(request, version), version))
        return found


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KraftBroker]:
    broker = KraftBroker(tmp_path / "kafka", {name.replace("_", "."): value for name, value in QUICK.items()})
    broker.start()
    yield broker
    broker.close()


def test_each_request_is_refused_as_by_kafka(own_broker: StartBroker, kafka: KraftBroker) -> None:
    theirs, ours = said(kafka.bootstrap), said(group_broker(own_broker).bootstrap)
    assert ours == theirs
    refused = [name for name, response in theirs.items() if str(int(ErrorCode.UNSUPPORTED_VERSION)) in str(response)]
    assert len(refused) == 9, "it is off at Kafka"
