"""The app reads its broker's address when it is imported, so the address is there before that."""

import os

import pytest


@pytest.fixture(autouse=True)
def address(kafka_broker):
    """Of the broker of this run, which is the same for each test."""
    os.environ["KAFKA_BOOTSTRAP_SERVERS"] = kafka_broker.bootstrap_servers
