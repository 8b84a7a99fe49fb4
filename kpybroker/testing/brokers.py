"""What a `Broker` and a `Cluster` have in common: their life, their clients, and waiting for things."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakSet

from kpybroker.testing.aio import Aio, Block, in_thread
from kpybroker.testing.asserting import Asserting
from kpybroker.testing.checking import kinds, unused
from kpybroker.testing.checking.calls import checked, did_you_mean
from kpybroker.testing.clients.making import Clients
from kpybroker.testing.clock import BrokerClock
from kpybroker.testing.errors import BrokerGone, TestingError, UsageError
from kpybroker.testing.fault import Handles
from kpybroker.testing.faults import Faults
from kpybroker.testing.running.channel import Channel
from kpybroker.testing.running.options import BrokerKeywords, BrokerOptions, takes
from kpybroker.testing.security import Security
from kpybroker.testing.waiting import WAIT_S, wait_for

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self, Unpack

    from kpybroker.testing.look import Group, Request, ShareGroup
    from kpybroker.testing.running.runner import Runner
    from kpybroker.testing.typed.names import GroupState
    from kpybroker.testing.typed.several import Many

T = TypeVar("T")

SEEN_LINES, SEEN_REQUESTS = 40, 20
"""So much of its log, and of its requests, the report of a failed test shows."""
known: WeakSet[Brokers] = WeakSet()
"""All that were started by this process and are still referred to."""
LOG_LINES_MAX: Final = 2_000
GROUP: Final = kinds.optional(kinds.text)
_MEMBERS: Final = kinds.optional(kinds.integer(0, 10_000))
_STATE: Final = kinds.optional(kinds.named("GroupState"))

INTERNAL_TOPICS = {"offsets.topic.num.partitions": "6", "transaction.state.log.num.partitions": "6"}
"""Enough for three coordinators. The first group and each snapshot are faster than with Kafka's 50 of each."""


class Brokers(Asserting, Clients, Block):
    """See `Broker` and `Cluster`."""

    @takes(BrokerOptions)
    def __init__(self, brokers: int, **options: Unpack[BrokerKeywords]) -> None:
        from kpybroker.testing.running.launch import Launch

        wanted = BrokerOptions(**options)
        keys = INTERNAL_TOPICS | wanted.keys()
        self.group_protocol = wanted.group_protocol
        self._topics = wanted.topic_partitions()
        self._security = Security(wanted.tls, wanted.sasl, wanted.acl)
        self._launch = Launch(brokers, keys, wanted, self._security.wanted)
        self._start_timeout = wanted.start_timeout
        self._runner: Runner | None = None
        self._channel: Channel | None = None
        self._handles: Handles | None = None
        self._log_at_end = ""
        self.seen: tuple[list[str], list[Request]] | None = None
        """The log and the last requests of a block that failed, as they were then."""
        self.started_s = 0.0
        """When it was started last."""
        self._listeners: list[tuple[str, int]] = []

    # --- life

    @checked()
    def start(self) -> Self:
        """Start, and return once the brokers serve and the topics exist. Raises StartError."""
        if self._runner is not None:
            raise UsageError(f"{self!r} is started already", "start it once, or make another one")
        self._runner = self._new_runner()
        self.seen, self.started_s = None, time.time()
        known.add(self)
        try:
            address = self._runner.start(self._start_timeout)
            self._channel = Channel(*address, self._runner.why_gone)
            self._handles = Handles(self._channel)
            self._learn_addresses()
            for name, partitions in self._topics.items():
                self.create_topic(name, partitions)
        except BaseException:
            self.kill()
            raise
        return self

    def _new_runner(self) -> Runner:
        return self._launch.runner()

    @checked()
    def stop(self) -> None:
        """Stop in order, and remove what was not to be kept. Stopping again does nothing."""
        runner, channel = self._runner, self._channel
        if runner is None:
            return
        unsettled = self._end_faults()
        if channel is not None:
            try:
                channel.call("stop")
            except TestingError:
                pass  # it has ended already
            channel.close()
        runner.end()
        self._forget(runner)
        if sys.exc_info()[1] is None:
            unused.report(unsettled)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._look_back()
        super().__exit__(kind, error, trace)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            await in_thread(self._look_back)
        await super().__aexit__(kind, error, trace)

    def _look_back(self) -> None:
        """Keep the log and the last requests: the block has failed."""
        try:
            self.seen = self.log(SEEN_LINES), self.requests(limit=SEEN_REQUESTS)
        except TestingError:
            pass  # it has ended

    def _end_faults(self) -> list[TestingError]:
        """They end with their broker; what is to be reported of them."""
        self._keep_faults()
        channel = self._channel
        return unused.settle(unused.taken(lambda fault: fault.channel is channel))

    def _keep_faults(self) -> None:
        """Keep what is known of the faults, which are left as they are: what they hold is not to go on."""
        try:
            if self._handles is not None:
                self._handles.end()
        except TestingError:
            pass  # the broker has ended: what they did is not known

    @checked()
    def kill(self) -> None:
        """End at once, as SIGKILL does, and remove what was not to be kept."""
        runner = self._runner
        if runner is None:
            return
        if self._channel is not None:
            self._keep_faults()
            self._channel.close()
        runner.kill()
        self._forget(runner)

    def _forget(self, runner: Runner) -> None:
        self._log_at_end = runner.log()
        self._runner = self._channel = self._handles = None
        for name in ("faults", "clock"):
            self.__dict__.pop(name, None)

    @property
    def is_running(self) -> bool:
        """Whether it is between `start` and `stop`."""
        return self._channel is not None

    @property
    def channel(self) -> Channel:
        """The client of the control channel. Raises BrokerGone."""
        if self._channel is None:
            raise BrokerGone(f"{self!r} is not running", "use it in its `with` block, or call start()")
        return self._channel

    @property
    def control(self) -> str:
        """The address of the control channel, for tools in other languages."""
        host, port = self.channel.address
        return f"http://{host}:{port}"

    @property
    def data_dir(self) -> str:
        """The directory with everything that it writes."""
        return self._launch.directory

    @checked(lines=kinds.integer(1, LOG_LINES_MAX))
    def log(self, lines: int = 200) -> list[str]:
        """The last lines of the log; after the end, what there was at the end."""
        if self._channel is None:
            return self._log_at_end.splitlines()[-lines:]
        found: list[str] = self._channel.call("log", lines=lines)
        return found

    def __repr__(self) -> str:
        where = ",".join(f"{host}:{port}" for host, port in self._listeners) if self._channel else "not running"
        return f"<{type(self).__name__} {where}>"

    # --- clients

    def _learn_addresses(self) -> None:
        up = [broker for broker in self.status()["brokers"] if broker["listeners"]]
        self._listeners = [(one["listeners"][0]["host"], one["listeners"][0]["port"]) for one in up]

    @property
    def bootstrap_servers(self) -> str:
        """What clients are given: the address of each broker that was up at the start, separated by commas."""
        self.channel  # noqa: B018 -- raises if it is not running
        return ",".join(f"{host}:{port}" for host, port in self._listeners)

    @property
    def bootstrap_server(self) -> str:
        """The same, under the name that other packages have for it."""
        return self.bootstrap_servers

    @property
    def users(self) -> Mapping[str, str]:
        """The users of `sasl` with their passwords; with `acl`, admin may do everything."""
        return self._security.users

    def _settings(self, library: str, user: str | None, extra: dict[str, Any]) -> dict[str, Any]:
        return {**self._security.settings(library, user, self._launch.place), **extra}

    # --- faults and time

    @cached_property
    def faults(self) -> Faults:
        """Make requests and the disk fail."""
        channel = self.channel
        assert self._handles is not None
        return Faults(channel, self._handles)

    @cached_property
    def clock(self) -> BrokerClock:
        """The brokers' clock."""
        return BrokerClock(self.channel)

    @checked()
    def reset(self) -> None:
        """Remove all faults, resume what is paused, heal the network. Clock and data stay as they are."""
        if self._handles is not None:
            self._handles.capture()
        super().reset()

    @property
    def aio(self) -> Aio:
        """The awaitable twins of what waits, for asyncio and trio."""
        return Aio(self)

    # --- waiting

    @checked(condition=kinds.function, timeout=kinds.timeout, what=kinds.optional(kinds.text))
    def wait_for(self, condition: Callable[[], T], timeout: float = WAIT_S, what: str | None = None) -> T:
        """The first true result of a condition, which may have assertions. Raises WaitTimeout, with what was seen."""
        return wait_for(condition, timeout, what)

    @checked(group=kinds.text, state=_STATE, members=_MEMBERS, timeout=kinds.timeout)
    def wait_group(
        self, group: str, state: GroupState | None = "Stable", members: int | None = None, timeout: float = WAIT_S
    ) -> Group:
        """A group once it is in this state, with so many members. Raises WaitTimeout, with the group as it is.

        `state` None: any.
        """
        wanted = _wanted("wait_group", state, members)

        def found() -> Group | None:
            there = self.group(group)
            is_so = there is not None and state in (None, there.state) and members in (None, len(there.members))
            return there if is_so else None

        return self._wait_group(found, group, timeout, f"group {group} ({wanted})")

    @checked(group=kinds.text, state=_STATE, members=_MEMBERS, timeout=kinds.timeout)
    def wait_share_group(
        self, group: str, state: GroupState | None = "Stable", members: int | None = None, timeout: float = WAIT_S
    ) -> ShareGroup:
        """A share group (KIP-932) with what its members hold, once it is so, as `wait_group`. Raises WaitTimeout."""
        wanted = _wanted("wait_share_group", state, members)

        def found() -> ShareGroup | None:
            there = self.share_group(group)
            is_so = there is not None and state in (None, there.state) and members in (None, len(there.members))
            return there if is_so else None

        what = f"share group {group} ({wanted})"
        there = wait_for(found, timeout, what, lambda: self.share_group(group) or self._no_group(group))
        assert there is not None
        return there

    @checked(
        group=kinds.text,
        topic=kinds.topic,
        offsets=kinds.listed("offsets"),
        partition=kinds.index,
        timeout=kinds.timeout,
    )
    def wait_acknowledged(
        self, group: str, topic: str, offsets: Many[int], *, partition: int = 0, timeout: float = WAIT_S
    ) -> ShareGroup:
        """The share group once it never delivers these again, as `assert_acknowledged`. Raises WaitTimeout."""
        wanted = [*offsets]

        def found() -> ShareGroup | None:
            self.assert_acknowledged(group, topic, wanted, partition=partition)
            return self.share_group(group)

        there = wait_for(found, timeout, f"acknowledgements of {topic}-{partition} by share group {group}")
        assert there is not None
        return there

    @checked(
        group=kinds.text, topic=kinds.optional(kinds.topic), members=kinds.optional(kinds.count), timeout=kinds.timeout
    )
    def wait_assigned(
        self, group: str, topic: str | None = None, members: int | None = None, timeout: float = WAIT_S
    ) -> Group:
        """A stable group whose members have all partitions of the topic, or of what they subscribed to, between them.

        Raises WaitTimeout, with the group as it is.
        """

        def found() -> Group | None:
            there = self.group(group)
            if there is None or there.state != "Stable" or members not in (None, len(there.members)):
                return None
            wanted = {topic} if topic is not None else {name for one in there.members for name in one.subscription}
            return there if wanted and all(self._is_assigned(there, name) for name in wanted) else None

        return self._wait_group(found, group, timeout, f"the assignment of {topic or 'all topics'} in group {group}")

    def _is_assigned(self, group: Group, topic: str) -> bool:
        has = {index for member in group.members for index in member.assignment.get(topic, ())}
        known = self.topics(internal=True).get(topic)
        return known is not None and has == {partition.index for partition in known.partitions}

    def _wait_group(self, found: Callable[[], Group | None], group: str, timeout: float, what: str) -> Group:
        there = wait_for(found, timeout, what, lambda: self.group(group) or self._no_group(group))
        assert there is not None
        return there

    def _no_group(self, group: str) -> str:
        """The text for a group that is not there, with the name that may have been meant."""
        near = did_you_mean(group, self.groups())
        return f"no such group; {near}" if near.startswith("did") else "no such group"


def _wanted(call: str, state: GroupState | None, members: int | None) -> str:
    """The text of what a group is waited for. Raises UsageError for what no group can be."""
    if members is not None and state is not None and (members == 0) is not (state == "Empty"):
        fix = "a group without members is Empty: give state='Empty'" if not members else "an Empty group has none"
        raise UsageError(f"{call}(state={state!r}, members={members})", fix)
    return ", ".join(filter(None, (state, f"{members} members" if members is not None else None)))
