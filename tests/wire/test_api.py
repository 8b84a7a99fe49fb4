"""The table of APIs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kpybroker.wire.api import API_INFO, ApiInfo, ApiKey
from kpybroker.wire.messages.produce import ProduceRequest, ProduceResponse


def test_classes_are_found_by_key() -> None:
    assert API_INFO[ApiKey.PRODUCE].request_class() is ProduceRequest
    assert API_INFO[ApiKey.PRODUCE].response_class() is ProduceResponse


@pytest.mark.parametrize("info", API_INFO.values(), ids=lambda info: info.name)
def test_table_and_classes_agree(info: ApiInfo) -> None:
    for message_class in (info.request_class(), info.response_class()):
        assert info.valid_versions == message_class.VERSIONS
        assert info.flexible_from == message_class.FLEXIBLE_FROM
    low, high = info.valid_versions
    assert [info.supports(version) for version in (low - 1, low, high, high + 1)] == [
        False,
        True,
        True,
        False,
    ]


@pytest.mark.not_quick
def test_no_message_module_is_imported_before_it_is_needed() -> None:
    """A broker's start imports only the APIs that it uses."""
    program = (
        "import sys, kpybroker.wire.api, kpybroker.wire.codec, kpybroker.wire.headers;"
        "print(*sorted(name for name in sys.modules if 'wire.messages.' in name))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["kpybroker.wire.messages.keys"]
