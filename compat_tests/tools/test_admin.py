"""Kafka 4.3.1's tools of administration at a broker in its place: what they print there, but for what is named here."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from compat_tests.tools.admin_outputs import AUTHORIZER, outputs, recorded
from kpybroker.config.keys.own import KAFKA_VERSION
from tests.support.programs.threaded_broker import threaded_broker

SETTLED_S: Final = 30.0
"""How long the output of a command that changes nothing may differ: a change reaches the broker a little later."""


def test_the_tools_print_what_they_print_on_kafka(tmp_path: Path) -> None:
    expected = recorded()
    until = time.monotonic() + SETTLED_S

    def again(head: str, text: str) -> bool:
        return text != expected[head] and time.monotonic() < until

    keys = {name.replace(".", "_"): value for name, value in {**AUTHORIZER, KAFKA_VERSION: "4.3"}.items()}
    with threaded_broker(tmp_path / "data", **keys) as bootstrap:
        found = outputs(bootstrap, tmp_path, again)
    assert found.keys() == expected.keys()
    assert {command: text for command, text in found.items() if text != expected[command]} == {}
