"""Orders by Django's test client, events and shipments on a real broker."""

import pytest
from django.core.management import call_command
from shop.models import Order


@pytest.fixture(autouse=True)
def kafka(kafka_broker, settings):
    """The broker of the tests in the settings, and fresh topics."""
    settings.KAFKA = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    for topic in ("orders", "shipments"):
        kafka_broker.create_topic(topic)
    yield
    for topic in ("orders", "shipments"):
        kafka_broker.delete_topic(topic)


@pytest.mark.django_db(transaction=True)
def test_an_order_has_its_event(client, kafka_broker):
    number = client.post("/orders", {"product": "tea"}).json()["id"]
    (record,) = kafka_broker.records("orders")
    assert (record.key_text, record.json()) == (str(number), {"order": number, "product": "tea"})


@pytest.mark.django_db(transaction=True)
def test_an_order_that_is_rolled_back_has_none(client, kafka_broker):
    assert client.post("/orders", {}).status_code == 400
    assert Order.objects.count() == 0
    assert kafka_broker.records("orders") == []


@pytest.mark.django_db
def test_a_shipment_marks_its_order(kafka_broker, group_id):
    first, second = (Order.objects.create(product=name) for name in ("tea", "cups"))
    kafka_broker.produce("shipments", [{"order": second.pk}])
    call_command("ship", count=1, group=group_id)
    assert [Order.objects.get(pk=order.pk).shipped for order in (first, second)] == [False, True]
    kafka_broker.assert_lag(group_id, 0, "shipments")
