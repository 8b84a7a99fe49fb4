"""The index has what the table has, after inserts, updates and deletes, and after a crash in the middle."""

import json

import pytest
from index import Index, follow


def change(number, before, after):
    """A record as Debezium's PostgreSQL connector writes it, with JSON converters without schemas."""
    kind = "c" if before is None else "d" if after is None else "u"
    return json.dumps({"id": number}), json.dumps({"op": kind, "before": before, "after": after})


def product(number, name):
    return {"id": number, "name": name}


TEA, CUP, GREEN = product(1, "black tea"), product(2, "tea cup"), product(1, "green tea")


@pytest.fixture
def index(tmp_path):
    index = Index(str(tmp_path / "products.sqlite"))
    yield index
    index.close()


@pytest.fixture
def settings(kafka_broker):
    return kafka_broker.config("confluent-kafka")


@pytest.mark.kafka(partitions=2)
def test_what_is_inserted_changed_and_deleted(index, settings, kafka_broker, kafka_topic):
    kafka_broker.produce(kafka_topic, [change(1, None, TEA), change(2, None, CUP)])
    assert follow(settings, kafka_topic, index, to_end=True) == 2
    assert sorted(found["id"] for found in index.search("tea")) == [1, 2]
    kafka_broker.produce(kafka_topic, [change(1, TEA, GREEN), change(2, CUP, None), (json.dumps({"id": 2}), None)])
    assert follow(settings, kafka_topic, index, to_end=True) == 3
    assert index.search("tea") == index.search("green") == [{"id": 1}]
    assert index.search("black") == index.search("cup") == []


def test_a_crash_neither_repeats_nor_leaves_out_a_change(index, settings, kafka_broker, kafka_topic):
    kafka_broker.produce(kafka_topic, [change(1, None, TEA), (json.dumps({"id": 2}), "no JSON")])
    with pytest.raises(json.JSONDecodeError):
        follow(settings, kafka_topic, index, to_end=True)
    assert (index.search("tea"), index.position(0)) == ([], 0)
    kafka_broker.delete_records(kafka_topic, 2)
    kafka_broker.produce(kafka_topic, [change(1, None, TEA), change(2, None, CUP)])
    assert follow(settings, kafka_topic, index, to_end=True) == 2
    assert follow(settings, kafka_topic, index, to_end=True) == 0
    assert sorted(found["id"] for found in index.search("tea")) == [1, 2]


def test_it_can_be_built_again_from_a_compacted_topic(tmp_path, settings, kafka_broker, kafka_topic):
    kafka_broker.produce(kafka_topic, [change(1, None, TEA), change(1, TEA, GREEN)])
    for name in ("first.sqlite", "second.sqlite"):
        index = Index(str(tmp_path / name))
        assert follow(settings, kafka_topic, index, to_end=True) == 2
        assert index.search("green") == [{"id": 1}]
        index.close()
