"""What each hosted broker gets in place of the real clock, transport, files and so on: one place for all of it.

Its requests pass through an interceptor. Those of all brokers of this process share rules and log.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from kpybroker.control.levers.topology import Topology
from kpybroker.control.requests.faults import FaultRules
from kpybroker.control.requests.interceptor import Interceptor
from kpybroker.control.requests.predicates import Predicates
from kpybroker.control.requests.request_log import RequestLog

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.requests.dispatch import RespondNow
    from kpybroker.control.hosted import Hosted
    from kpybroker.control.plan import BrokerPlan


def seams_of(hosted: Hosted, plan: BrokerPlan) -> dict[str, Any]:
    """Keyword arguments of `Broker.open`, for a process with a control channel."""
    return {"clock": hosted.clock, "intercept": partial(_intercepting, hosted), **hosted.part(Topology).seams(plan)}


def _intercepting(hosted: Hosted, broker: Broker) -> RespondNow:
    """What responds to the requests of a broker, in which a test holds back what it wants from now on."""
    hosted.part(Topology).holds.install(broker)
    rules, predicates, log = hosted.part(FaultRules), hosted.part(Predicates), hosted.part(RequestLog)
    return Interceptor(broker, rules, predicates, log).respond_now


async def remove_all_faults(hosted: Hosted) -> None:
    """For `reset`: remove the faults of requests, and the others that have a handle there."""
    hosted.part(FaultRules).handles.clear()
