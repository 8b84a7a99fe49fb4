"""The pipelines and their demos by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kpybroker.pipelines.activity.demo import demo as activity_demo
from kpybroker.pipelines.activity.pipeline import ACTIVITY
from kpybroker.pipelines.changes.demo import demo as changes_demo
from kpybroker.pipelines.changes.pipeline import CHANGES
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.ledger.demo import demo as ledger_demo
from kpybroker.pipelines.ledger.pipeline import LEDGER
from kpybroker.pipelines.logs.demo import demo as logs_demo
from kpybroker.pipelines.logs.pipeline import LOGS
from kpybroker.pipelines.operations.demo import demo as operations_demo
from kpybroker.pipelines.operations.pipeline import OPERATIONS
from kpybroker.pipelines.runtime.pipeline import Pipeline
from kpybroker.pipelines.suggestion.demo import demo as suggestion_demo
from kpybroker.pipelines.suggestion.pipeline import SUGGESTION
from kpybroker.pipelines.warehouse.demo import demo as warehouse_demo
from kpybroker.pipelines.warehouse.pipeline import WAREHOUSE

Found = TypeVar("Found")
PIPELINES: Mapping[str, Pipeline[Any]] = {
    one.name: one for one in (ACTIVITY, OPERATIONS, LOGS, CHANGES, LEDGER, SUGGESTION, WAREHOUSE)
}
DEMOS: Mapping[str, Callable[[Sequence[str]], None]] = {
    ACTIVITY.name: activity_demo,
    OPERATIONS.name: operations_demo,
    LEDGER.name: ledger_demo,
    CHANGES.name: changes_demo,
    LOGS.name: logs_demo,
    SUGGESTION.name: suggestion_demo,
    WAREHOUSE.name: warehouse_demo,
}
"""Each takes its arguments."""


def find(among: Mapping[str, Found], name: str) -> Found:
    """The pipeline or demo of that name. Raises `PipelineError`."""
    if name not in among:
        raise PipelineError(f"There is no pipeline '{name}'.", f"Choose one of {', '.join(among)}.", 2)
    return among[name]
