"""Around one broker's dispatcher: looks at each request, lets faults act on it, and logs it.

A request that no fault can match by its header and its client gets its response as without an interceptor. Otherwise it
is decoded, and the faults look at it in the order in which they were added:

1. Acts before the work happen at once: a delay or a hold waits, a disconnect ends it all. Errors are noted.
2. The work (`working`): if there are errors for some of what the request names, the rest of it.
3. Acts after the work (`acting`): damage and throttle time in the response, then waits, and then at most one that
   decides how the response leaves: whole, in pieces, in part, or not at all.

An act that ends the request (no response, a disconnect) hides it from the faults that were added later.

What waits here holds its own connection only. A delay is on the broker's clock: moving that ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from kpybroker.broker.loop.steps import Pending, Steps, run_steps
from kpybroker.broker.network.response import NO_RESPONSE, Response, steps_of
from kpybroker.broker.requests.context import ConnectionInfo
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.control.requests import acting, working
from kpybroker.control.requests.calls import Call, call_of
from kpybroker.control.requests.faults import Fault, FaultRules
from kpybroker.control.requests.predicates import Predicates
from kpybroker.control.requests.request_json import head_json, message_json
from kpybroker.control.requests.request_log import Entry, RequestLog
from kpybroker.control.requests.seams import Intercepted
from kpybroker.control.rules import acts
from kpybroker.control.rules.matching import select
from kpybroker.control.rules.merging import Failure, depth_of_error
from kpybroker.wire.api import ApiKey
from kpybroker.wire.headers import RequestHeader, parse_request_header


class Interceptor:
    """`respond_now` takes the place of its dispatcher's. Rules, predicates and log may be shared with other brokers."""

    def __init__(self, broker: Intercepted, rules: FaultRules, predicates: Predicates, log: RequestLog) -> None:
        self._broker = broker
        self._rules = rules
        self._predicates = predicates
        self._log = log

    def respond_now(self, frame: bytearray | memoryview, connection: ConnectionInfo) -> Response | Pending[Response]:
        """As `Dispatcher.respond_now`."""
        header = parse_request_header(frame)
        broker = self._broker
        entry = self._log.begin(broker.node_id, frame, header, connection, broker.clock.time_ms())
        return run_steps(self._logged(entry, partial(self._respond, frame, header, connection, entry)))

    def _logged(self, entry: Entry, respond: Callable[[], Response | Pending[Response]]) -> Steps[Response]:
        try:
            response = yield from steps_of(respond)
        except BaseException as error:
            self._log.fail(entry, error)
            raise
        self._log.end(entry, response)
        return response

    def _respond(
        self, frame: bytearray | memoryview, header: RequestHeader, connection: ConnectionInfo, entry: Entry
    ) -> Response | Pending[Response]:
        if self._rules:
            ignoring = self._rules.ignoring(header, connection)
            if ignoring is not None:
                entry.faults = [ignoring.id]
                return acting.ignored(ignoring, connection)
            faults = self._rules.candidates(self._broker.node_id, header, connection)
            if faults and header.api_key in SERVED:
                return run_steps(self._serve(bytearray(frame), header, connection, faults, entry))
        return self._broker.dispatcher.respond_directly(frame, connection, header)

    def _serve(
        self,
        frame: bytearray,
        header: RequestHeader,
        connection: ConnectionInfo,
        faults: Sequence[Fault],
        entry: Entry,
    ) -> Steps[Response]:
        broker = self._broker
        call = yield from call_of(frame, header, connection, broker.metadata, broker.fetch_service.sessions)
        entry.faults = call.faults
        try:
            for fault in faults:
                yield from self._consider(call, fault)
            response = yield from working.work(broker, call)
            return (yield from acting.after_work(call, response))
        except acting.NoResponseError:
            return NO_RESPONSE

    def _consider(self, call: Call, fault: Fault) -> Steps[None]:
        """Let one fault act on the request, or note that it will."""
        match, act = fault.rule.match, fault.rule.act
        if fault.is_removed or fault.is_open or (isinstance(act, acts.Corrupt) and call.key is not ApiKey.FETCH):
            return
        selected = select(match, call.shape, call.found, call.request)
        if not selected or (match.is_asked and not (yield from self._asked(call, fault))):
            return
        if isinstance(act, acts.Corrupt | acts.Throttle):
            call.late.append((fault, selected))  # whether it can act is known from the response
        elif fault.fires():
            call.faults.append(fault.id)
            if isinstance(act, acts.Error):
                depth = depth_of_error(call.shape, match, act)
                text = f"injected by fault {fault.id}"
                failure = Failure(match, act.code, text, depth, selected, is_after_work=act.after_work)
                call.failures.append((fault, failure))
            elif acts.is_after_work(act):
                call.late.append((fault, selected))
            else:
                yield from acting.before_work(call, fault)

    def _asked(self, call: Call, fault: Fault) -> Steps[bool]:
        head = head_json(self._broker.node_id, call.header, call.connection)
        decision = yield from self._predicates.ask(fault.id, head, message_json(call.request, call.version))
        fault.undecided += decision is None
        return bool(decision)
