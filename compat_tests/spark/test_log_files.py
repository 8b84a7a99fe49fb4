"""What Spark's tests left on disk: runs last of them. On its own it writes some records first."""

from __future__ import annotations

from compat_tests.exchange.files import check_verify, compacted_topics
from compat_tests.exchange.left_files import check_segments, stopped
from compat_tests.support import quick
from compat_tests.support.services import Broker


def test_files_are_whole(broker: Broker, made: str) -> None:
    """Kafka's DumpLogSegments reads every batch, and `kpybroker log verify` finds nothing wrong."""
    quick.fill(broker.bootstrap, made, ["some", "records"])
    with stopped(broker) as directory:
        assert check_segments(directory) >= 1
        assert check_verify(directory, compacted_topics(directory), is_clean=True) == []
