"""A Kafka Connect that is not one, and a console of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from kpybroker.console.options import parse_connect
from tests.console.conftest import MakeClient
from tests.console.connect.fake import FakeConnect, serving

CODE = "s3same!"
"""A secret."""


@pytest.fixture
def fake() -> Iterator[FakeConnect]:
    """With one connector that is well and one with a failed task."""
    with serving(FakeConnect()) as found:
        found.add("billing", table_url="http://tables", table_code=CODE, topics="orders", batch_size="50")
        found.add("shipping", table_url="http://tables", table_code=CODE)
        found.states["shipping"] = ["RUNNING", "RUNNING", "FAILED"]
        yield found


@pytest.fixture
def browser(client: MakeClient, fake: FakeConnect) -> TestClient:
    return client(allow_changes=True, connects=(parse_connect(f"etl={fake.url}"),))
