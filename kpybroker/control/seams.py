"""What each hosted broker gets in place of the real clock, transport, files and so on: one place for all of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from kpybroker.control.interception import intercepting
from kpybroker.control.levers.topology import Topology

if TYPE_CHECKING:
    from kpybroker.control.hosted import Hosted
    from kpybroker.control.plan import BrokerPlan


def seams_of(hosted: Hosted, plan: BrokerPlan) -> dict[str, Any]:
    """Keyword arguments of `Broker.open`, for a process with a control channel."""
    return {"clock": hosted.clock, "intercept": partial(intercepting, hosted), **hosted.part(Topology).seams(plan)}
