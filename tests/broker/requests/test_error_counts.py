"""Where the codes of each API's response are, and how they are counted."""

from __future__ import annotations

import pytest

from kpybroker.broker.requests.error_counts import codes_of, count, count_steps
from kpybroker.broker.requests.served import SERVED
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.messages.fetch import FetchResponse
from kpybroker.wire.messages.metadata import MetadataResponse
from kpybroker.wire.messages.offset_fetch import OffsetFetchResponse
from kpybroker.wire.yield_budget import WorkBudget


@pytest.mark.parametrize("key", SERVED)
def test_every_response_has_codes(key: ApiKey) -> None:
    assert codes_of(API_INFO[key].response_class()) is not None


def fetched(*codes: int) -> FetchResponse:
    partitions = [FetchResponse.PartitionData(partition_index=at, error_code=code) for at, code in enumerate(codes)]
    return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="t", partitions=partitions)])


def test_codes_are_counted_at_every_level() -> None:
    codes = codes_of(FetchResponse)
    assert codes is not None
    counts: dict[int, int] = {}
    count(fetched(0, 3, 3), codes, counts)
    count(FetchResponse(error_code=71), codes, counts)
    assert counts == {0: 2, 3: 2, 71: 1}


def test_of_metadata_topics_count_and_partitions_do_not() -> None:
    codes = codes_of(MetadataResponse)
    assert codes is not None
    counts: dict[int, int] = {}
    partition = MetadataResponse.MetadataResponsePartition(error_code=5)
    topic = MetadataResponse.MetadataResponseTopic(error_code=3, name="t", partitions=[partition])
    count(MetadataResponse(topics=[topic]), codes, counts)
    assert counts == {3: 1}


def test_a_large_response_is_counted_in_slices_with_the_same_result() -> None:
    codes = codes_of(OffsetFetchResponse)
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
