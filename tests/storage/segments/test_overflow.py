"""Offsets that a segment's index cannot express."""

from __future__ import annotations

import pytest

from kpybroker.storage.segments.overflow import SegmentOverflowError, check_no_overflow
from kpybroker.storage.segments.segment import LogSegment
from kpybroker.storage.segments.segment_files import SegmentFiles, SegmentSettings
from tests.support.storage.batches import NOW_MS
from tests.support.storage.lossy_files import LossyFiles


def test_offsets_beyond_the_index_overflow() -> None:
    files = SegmentFiles(LossyFiles(), "", 100)
    found = LogSegment(files, SegmentSettings(1 << 20, 150), now_ms=NOW_MS, create=True)
    check_no_overflow(found, 100 + 2**31 - 1)
    for offset in (99, 100 + 2**31):
        with pytest.raises(SegmentOverflowError, check=lambda error: error.segment is found):
            check_no_overflow(found, offset)
