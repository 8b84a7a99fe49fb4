"""Connections and the loop. Rates over 30 seconds, as of Kafka's sensors, move at `tick`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Final

from kpybroker.broker.loop.stall import LoopStallGauge
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.server import Server
from kpybroker.metrics.rates import TICK_S, Rates
from kpybroker.metrics.reading import Reading, Share, single
from kpybroker.metrics.tables import network as n

PROCESSOR: Final = "0"
WINDOW_TICKS: Final = int(30 / TICK_S)
LONG_MAX: Final = 2**63 - 1


class NetworkReader:
    """`kafka.network:type=SocketServer` and the like, `kafka.server:type=socket-server-metrics`.

    `now_s` is the machine's time, in which the loop is busy or idle.
    """

    families: Final = n.FAMILIES

    def __init__(
        self, server: Server, stall: LoopStallGauge, listeners: Callable[[], Sequence[str]], now_s: Callable[[], float]
    ) -> None:
        self._server = server
        self._stall = stall
        self._listeners = listeners
        self._now_s = now_s
        self._began_s = now_s() - stall.busy_s
        self._busy_s = Rates(0, now_s())
        self._ticked_s = now_s()
        self._idle = 1.0
        self._history: deque[tuple[float, Counter[str], Counter[str]]] = deque(maxlen=WINDOW_TICKS)

    def tick(self) -> None:
        """A few seconds have passed."""
        now_s, stall = self._now_s(), self._stall
        self._busy_s.tick(int(stall.busy_s * 1e9))
        self._ticked_s = now_s
        self._idle = min(max(1 - self._busy_s.one_minute / 1e9, 0.0), 1.0)
        server = self._server
        self._history.append((now_s, Counter(server.accepted), Counter(server.ended)))

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """Values now, and rates of the last ticks."""
        server = self._server
        used, most = server.memory
        available = max(most - used, 0) if most > 0 else LONG_MAX
        idle_ns = int((self._now_s() - self._began_s - self._stall.busy_s) * 1e9)
        listeners = list(self._listeners())
        rows = [(listener, PROCESSOR) for listener in listeners]
        open_now = await self._open_connections(budget)
        return [
            single((n.NETWORK_IDLE, self._idle), (n.MEMORY_USED, used), (n.MEMORY_AVAILABLE, available)),
            single((n.PROCESSOR_IDLE, self._idle), tags=(PROCESSOR,)),
            single((n.HANDLER_IDLE, Share(max(idle_ns, 0), self._idle))),
            Reading(
                [(one,) for one in listeners], [(n.ACCEPTOR_BLOCKED, [server.blocked_ns[one] for one in listeners])]
            ),
            Reading(
                rows,
                [
                    (n.CONNECTION_COUNT, [server.accepted[one] - server.ended[one] for one in listeners]),
                    (n.CREATION_TOTAL, [server.accepted[one] for one in listeners]),
                    (n.CREATION_RATE, [self._rate(1, server.accepted, one) for one in listeners]),
                    (n.CLOSE_TOTAL, [server.ended[one] for one in listeners]),
                    (n.CLOSE_RATE, [self._rate(2, server.ended, one) for one in listeners]),
                ],
            ),
            Reading([(*key, PROCESSOR) for key in open_now], [(n.CONNECTIONS, list(open_now.values()))]),
        ]

    async def _open_connections(self, budget: YieldBudget) -> Counter[tuple[str, str, str]]:
        found: Counter[tuple[str, str, str]] = Counter()
        for connection in self._server.connections:
            await budget.spend(1)
            software = connection.client_software_name, connection.client_software_version
            found[(*software, connection.listener_name)] += 1
        return found

    def _rate(self, which: int, counts: Counter[str], listener: str) -> float:
        if not self._history:
            return 0.0
        oldest = self._history[0]
        before = oldest[1] if which == 1 else oldest[2]
        elapsed_s = max(self._now_s() - oldest[0], TICK_S)
        return (counts[listener] - before[listener]) / elapsed_s
