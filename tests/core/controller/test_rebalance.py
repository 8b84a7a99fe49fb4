"""The look for leaders that are off balance comes again whatever became of it, and is left where the broker stops."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kpybroker.core.controller import elections
from kpybroker.core.controller.effects import Enqueue
from kpybroker.core.controller.parts import Parts

PARTS = cast(
    Parts, SimpleNamespace(is_active=True, settings=SimpleNamespace(leader_imbalance_check_interval_seconds=7))
)


def test_a_look_that_fails_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(parts: Parts) -> Iterator[Any]:
        yield "an effect"
        raise OSError("no response")

    monkeypatch.setattr(elections, "_rebalance", failing)
    procedure = elections.auto_preferred_election(PARTS)
    _, again = next(procedure), next(procedure)
    assert isinstance(again, Enqueue)
    with pytest.raises(OSError, match="no response"):
        next(procedure)


def test_a_look_can_be_left_in_its_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    def looking(parts: Parts) -> Iterator[Any]:
        yield "an effect"

    monkeypatch.setattr(elections, "_rebalance", looking)
    procedure = elections.auto_preferred_election(PARTS)
    next(procedure)
    procedure.close()  # RuntimeError if it goes on
