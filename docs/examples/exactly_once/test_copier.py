"""The target holds each record of the source once, although requests of the copier fail."""

import pytest
from copier import Copier


@pytest.fixture
def copier(kafka_broker, kafka_topic, group_id):
    kafka_broker.create_topic(f"{kafka_topic}-copy")
    copier = Copier(kafka_broker.config("confluent-kafka"), group_id, kafka_topic, f"{kafka_topic}-copy")
    yield copier
    copier.close()


def copy_all(copier, count):
    copied = 0
    for _ in range(60):
        copied += copier.copy_some(batch=10)
        if copied >= count:
            return
    raise AssertionError(f"only {copied} of {count} records were copied")


@pytest.mark.parametrize(
    "fault",
    [
        {},
        {"api": "TxnOffsetCommit", "error": "COORDINATOR_NOT_AVAILABLE"},
        {"api": "AddPartitionsToTxn", "error": "CONCURRENT_TRANSACTIONS"},
        {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"},
        {"api": "EndTxn", "error": "COORDINATOR_LOAD_IN_PROGRESS"},
    ],
    ids=lambda fault: fault.get("api", "none"),
)
def test_each_record_is_copied_once(kafka_broker, kafka_topic, kafka_faults, copier, fault):
    kafka_broker.produce(kafka_topic, [str(number) for number in range(40)])
    if fault:
        kafka_faults.error(fault["api"], fault["error"], times=2)
    copy_all(copier, 40)

    def all_are_there():  # a commit returns before its markers are written: what it wrote is seen soon after
        copies = kafka_broker.records(f"{kafka_topic}-copy", isolation="read_committed")
        assert [int(record.text) for record in copies] == list(range(40))
        return True

    kafka_broker.wait_for(all_are_there, timeout=30)
