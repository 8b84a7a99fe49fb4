"""The assignors by the names that clients and `group.consumer.assignors` use."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kpybroker.core.assignors.range_assignor import assign_ranges
from kpybroker.core.assignors.uniform_assignor import assign_uniformly
from kpybroker.core.assignors.values import Assignor

ASSIGNORS: Mapping[str, Assignor] = MappingProxyType({"uniform": assign_uniformly, "range": assign_ranges})
"""In Kafka's default order: the first is that of a group whose members name none."""
