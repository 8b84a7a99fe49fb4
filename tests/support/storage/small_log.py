"""A log whose segments and indexes are so small that a few records fill several."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kpybroker.storage.log.log import Log
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.storage.batches import log_config, open_log
from tests.support.storage.lossy_files import LossyFiles

SMALL = log_config(segment_bytes=600, index_interval_bytes=150, segment_index_bytes=8 * 40, retention_ms=-1)


def new(files: LossyFiles | None = None) -> Log:
    return open_log(files or LossyFiles(), "/logs/t-0", SMALL)


def code_of(call: Callable[[], object]) -> ErrorCode:
    """What a call is refused with."""
    with pytest.raises(KafkaError) as caught:
        call()
    return caught.value.code
