"""A FastStream app: payments are checked, and become receipts; what cannot be a payment is refused by its type.

KAFKA_BOOTSTRAP_SERVERS=127.0.0.1:9092 faststream run app:app
"""

import os

from faststream import FastStream
from faststream.kafka import KafkaBroker
from pydantic import BaseModel, PositiveInt

broker = KafkaBroker(os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092"))
app = FastStream(broker)


class Payment(BaseModel):
    """What arrives."""

    account: str
    amount: PositiveInt


class Receipt(BaseModel):
    """What is written."""

    account: str
    paid: int


@broker.subscriber("payments", group_id="cashier", auto_offset_reset="earliest")
@broker.publisher("receipts")
async def pay(payment: Payment) -> Receipt:
    """One receipt for each payment."""
    return Receipt(account=payment.account, paid=payment.amount)
