"""A large frame of equal elements is the one that the codec makes."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from compat_tests.overload.frames.large import large_frames
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.wire.api import API_INFO, ApiKey
from tests.wire.fuzz import fuzz_decode


@pytest.mark.parametrize(("keys", "elements"), [(SERVED, 1), (SERVED, 16), (SERVED, 300), ([ApiKey.METADATA], 99_900)])
def test_frames_are_those_that_the_codec_makes(keys: Iterable[ApiKey], elements: int) -> None:
    for key in keys:
        for version in set(SERVED[key]):
            encoded = list(fuzz_decode.large_frames(API_INFO[key], version, elements))
            assert list(large_frames(API_INFO[key], version, elements)) == encoded, (key.name, version)
