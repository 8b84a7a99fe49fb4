"""Where the codes of each API's response are, and how they are counted."""

from __future__ import annotations

import pytest

from kpybroker.broker.requests.error_counts import codes_of, count, count_steps
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from kpybroker.wire.messages.fetch import FetchResponse
from kpybroker.wire.messages.metadata import MetadataResponse
from kpybroker.wire.messages.offset_fetch import OffsetFetchResponse
from kpybroker.wire.yield_budget import WorkBudget


@pytest.mark.parametrize("key", SERVED)
def test_every_response_has_codes(key: ApiKey) -> None:
    assert all(codes_of(API_INFO[key].response_class(), version) for version in range(*SERVED[key]))


def fetched(*codes: int) -> FetchResponse:
    partitions = [FetchResponse.PartitionData(partition_index=at, error_code=code) for at, code in enumerate(codes)]
    return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="t", partitions=partitions)])


def test_codes_are_counted_at_every_level() -> None:
    codes = codes_of(FetchResponse, 12)
    assert codes is not None
    counts: dict[int, int] = {}
    count(fetched(0, 3, 3), codes, counts)
    count(FetchResponse(error_code=71), codes, counts)
    assert counts == {0: 2, 3: 2, 71: 1}


def test_of_metadata_topics_and_partitions_count() -> None:
    codes = codes_of(MetadataResponse, 12)
    assert codes is not None
    counts: dict[int, int] = {}
    partition = MetadataResponse.MetadataResponsePartition(error_code=5)
    topic = MetadataResponse.MetadataResponseTopic(error_code=3, name="t", partitions=[partition])
    count(MetadataResponse(topics=[topic]), codes, counts)
    assert counts == {3: 1, 5: 1}


def test_of_an_old_fetch_the_error_that_it_has_not_yet_counts() -> None:
    codes = codes_of(FetchResponse, 2)
    assert codes is not None
    counts: dict[int, int] = {}
    count(fetched(3), codes, counts)
    assert counts == {0: 1, 3: 1}


@pytest.mark.parametrize(("version", "expected"), [(3, {4: 1, 5: 1}), (4, {6: 1})])
def test_fields_that_a_version_lacks_do_not_count(version: int, expected: dict[int, int]) -> None:
    result = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
    topic = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
        name="t", results_by_partition=[result(partition_error_code=4), result(partition_error_code=5)]
    )
    codes = codes_of(AddPartitionsToTxnResponse, version)
    assert codes is not None
    counts: dict[int, int] = {}
    count(AddPartitionsToTxnResponse(error_code=6, results_by_topic_v3_and_below=[topic]), codes, counts)
    assert counts == expected


def test_a_large_response_is_counted_in_slices_with_the_same_result() -> None:
    codes = codes_of(OffsetFetchResponse, 7)
    assert codes is not None
    partitions = [OffsetFetchResponse.OffsetFetchResponsePartition(error_code=at % 2) for at in range(5000)]
    topics = [OffsetFetchResponse.OffsetFetchResponseTopic(name="t", partitions=partitions)]
    response = OffsetFetchResponse(topics=topics)
    at_once: dict[int, int] = {}
    in_slices: dict[int, int] = {}
    count(response, codes, at_once)
    slices = sum(1 for _ in count_steps(response, codes, in_slices, WorkBudget()))
    assert in_slices == at_once == {0: 2501, 1: 2500}
    assert slices >= 4
