"""A configuration's numbers as people say them."""

from __future__ import annotations

import pytest

from kpybroker.console.web.words import said


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("retention.ms", "604800000", "7 days"),
        ("retention.ms", "-1", None),
        ("retention.ms", None, None),
        ("file.delete.delay.ms", "60000", "1 minute"),
        ("segment.ms", "5400000", "1.5 hours"),
        ("linger.ms", "250", None),
        ("log.retention.hours", "168", "7 days"),
        ("offsets.retention.minutes", "10080", "7 days"),
        ("log.flush.interval.ms", str((1 << 63) - 1), "no limit"),
        ("max.compaction.lag.ms", "63072000000", "2 years"),
        ("segment.bytes", "1073741824", "1.0 GiB"),
        ("index.interval.bytes", "512", None),
        ("min.insync.replicas", "2000", None),
        ("cleanup.policy", "compact", None),
        ("some.ms", "٣٠٠٠", None),
    ],
)
def test_a_value(key: str, value: str | None, words: str | None) -> None:
    assert said(key, value) == words
