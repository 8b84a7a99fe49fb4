"""Values on their way to PostgreSQL. compat_tests/spark/pipelines/test_warehouse.py has a real one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from kpybroker.pipelines.sinks.table_output import plain


@pytest.fixture
def oslo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Oslo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("oslo")
@pytest.mark.parametrize("fold", [0, 1])
def test_a_time_of_spark_is_one_of_the_machine(fold: int) -> None:
    """Also in the hour that a zone has twice."""
    naive = datetime(2024, 10, 27, 2, 30, fold=fold)
    assert plain(naive) == datetime(2024, 10, 27, fold, 30, tzinfo=UTC)


def test_text_has_no_nul_and_bytes_are_bytes() -> None:
    assert plain("a\0b") == "a\ufffdb"
    assert plain(bytearray(b"\0")) == b"\0"
    assert plain(None) is None
    assert plain(7) == 7
