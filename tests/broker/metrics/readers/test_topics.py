"""What is counted of a topic, and where it is shown."""

from __future__ import annotations

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.metrics.readers.topics import FREQUENT, RARE, TopicsReader
from kpybroker.broker.replication.traffic import RareTraffic, TopicTraffic, Traffic
from kpybroker.metrics.tables import topics as t

SHOWN = {
    "bytes_in": "BytesInPerSec",
    "messages_in": "MessagesInPerSec",
    "produce_requests": "TotalProduceRequestsPerSec",
    "bytes_out": "BytesOutPerSec",
    "fetch_requests": "TotalFetchRequestsPerSec",
    "failed_produce_requests": "FailedProduceRequestsPerSec",
    "failed_fetch_requests": "FailedFetchRequestsPerSec",
    "bytes_rejected": "BytesRejectedPerSec",
    "invalid_crc": "InvalidMessageCrcRecordsPerSec",
    "produce_conversions": "ProduceMessageConversionsPerSec",
    "fetch_conversions": "FetchMessageConversionsPerSec",
}


def test_all_that_is_counted_is_shown() -> None:
    assert {name for name, _ in FREQUENT} == set(TopicTraffic.__slots__) - {"partitions", "rare", "shares"}
    assert {name for name, _ in RARE} == set(RareTraffic.__slots__)


async def test_each_count_is_shown_under_its_own_name() -> None:
    traffic = Traffic()
    counted = traffic.host("t")
    for number, name in enumerate(SHOWN, 1):
        setattr(counted if name in TopicTraffic.__slots__ else counted.rare_counts(), name, number)
    (reading,) = await TopicsReader(traffic).read(YieldBudget())
    assert reading.rows == [("",), ("t",)]
    shown = {family.name: values for family, values in reading.columns}
    for number, (name, family) in enumerate(SHOWN.items(), 1):
        of_topic = None if family == t.INVALID_CRC.name else number  # of the broker alone
        assert shown[family] == [number, of_topic], name
