"""Puts an interceptor around the dispatcher of each broker of this process; they share rules and log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.control.requests.faults import FaultRules
from kpybroker.control.requests.interceptor import Interceptor
from kpybroker.control.requests.predicates import Predicates
from kpybroker.control.requests.request_log import RequestLog

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.requests.dispatch import AnswerNow
    from kpybroker.control.hosted import Hosted


def intercepting(hosted: Hosted, broker: Broker) -> AnswerNow:
    """What answers the requests of a broker; for `Broker.open(intercept=...)`."""
    rules, predicates, log = hosted.part(FaultRules), hosted.part(Predicates), hosted.part(RequestLog)
    return Interceptor(broker, rules, predicates, log).answer_now


def remove_faults_on_reset(hosted: Hosted) -> None:
    """Have `reset` remove all faults: those of requests, and others that have a handle here."""

    async def remove_all() -> None:
        hosted.part(FaultRules).handles.clear()

    hosted.on_reset(remove_all)
