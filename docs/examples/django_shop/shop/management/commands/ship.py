"""`python manage.py ship`: marks orders as shipped, as the topic of shipments reports them."""

import json
from typing import Any

from confluent_kafka import Consumer
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from shop.models import Order


class Command(BaseCommand):
    """Reads `shipments` in the group `shop`."""

    help = "mark orders as shipped"

    def add_arguments(self, parser: CommandParser) -> None:
        """How many, for tests; without it until it is stopped."""
        parser.add_argument("--count", type=int, default=0)
        parser.add_argument("--group", default="shop")

    def handle(self, *args: Any, count: int, group: str, **options: Any) -> None:
        """Change the order, then commit the offset: the same shipment twice changes nothing more."""
        consumer = Consumer(
            {**settings.KAFKA, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        consumer.subscribe(["shipments"])
        seen = 0
        try:
            while not count or seen < count:
                message = consumer.poll(1)
                if message is None or message.error():
                    continue
                Order.objects.filter(pk=json.loads(message.value())["order"]).update(shipped=True)
                consumer.commit(message, asynchronous=False)
                seen += 1
        finally:
            consumer.close()
