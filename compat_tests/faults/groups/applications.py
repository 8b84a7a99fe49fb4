"""Applications: processes with a member of every group each, that are killed, stand still, and come back.

new       consumer groups (KIP-848)     old      classic groups     rolled     restarted one by one, from one
                                                                            protocol to the other and back
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from compat_tests.faults.clients.readers import wait_for_reader
from compat_tests.faults.clients.watchers import GROUP_PARTITIONS, GROUP_TOPIC, java_hash
from compat_tests.faults.clients.writers import Task
from compat_tests.faults.groups.history import SESSION_MS, GroupHistory, GroupProtocol
from compat_tests.faults.history import History, Partition, Read, Reader, record_of
from compat_tests.support.groups.logged_members import ConfluentMembers, JavaMembers
from compat_tests.support.groups.ownership import Event, Kind

GROUPS = {"new": GroupProtocol.CONSUMER, "old": GroupProtocol.CLASSIC, "rolled": GroupProtocol.ROLLED}
CLIENTS = ("confluent", "java", "confluent")
"""The client of each application."""
ROLL_S = 2.5
LOOK_S = 0.25
GONE = ("GROUP_ID_NOT_FOUND", "GroupIdNotFound")
"""What ends a consumer, with both clients: its group has become a classic one while it was fenced."""

COMMON = {
    "isolation_level": "read_committed",
    "auto_offset_reset": "earliest",
    "enable_auto_commit": "false",
    "reconnect_backoff_ms": 50,
    "reconnect_backoff_max_ms": 500,
    "metadata_recovery_strategy": "none",
    "fetch_min_bytes": 20_000,
    "commit": "sync",
}
# Requests may take longer than any cut: a commit that is late must not come after a later one.
OF_CLIENT: dict[str, dict[str, Any]] = {
    "confluent": {
        "endures": "true",
        "commit_every_ms": 400,
        "socket_timeout_ms": 15_000,
        "fetch_wait_max_ms": 300,
        "topic_metadata_refresh_interval_ms": 2_000,
    },
    "java": {"request_timeout_ms": 15_000, "fetch_max_wait_ms": 300, "metadata_max_age_ms": 2_000},
}
CLASSIC = {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": 500}
RANGE = {"confluent": "range", "java": "org.apache.kafka.clients.consumer.RangeAssignor"}


class Process(Protocol):
    """What an application needs of one (`MemberProcess`)."""

    @property
    def running(self) -> bool: ...
    @property
    def has_crashed(self) -> bool: ...
    def start(self, name: str, **settings: Any) -> object: ...
    def close(self, name: str) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def end(self) -> None: ...


class Application:
    """One process, with a member of every group. Whatever is done to it may be done in any state."""

    def __init__(self, name: str, client: str, process: Process, settings: Mapping[str, Any]) -> None:
        self.name = name
        self.protocols: dict[str, str] = {}
        """That of its member, by group."""
        self._client, self._process, self._settings = client, process, settings
        self._members: dict[str, str] = {}
        self._numbers = count(1)
        self._lock = threading.RLock()

    @property
    def has_crashed(self) -> bool:
        return self._process.has_crashed

    def start(self) -> None:
        with self._lock:
            if not self._process.running:
                self.kill()
                for group in self.protocols:
                    self._start(group)

    def kill(self) -> None:
        with self._lock:
            self._process.end()
            self._members.clear()

    def pause(self) -> None:
        with self._lock:
            self._process.pause()

    def resume(self) -> None:
        with self._lock:
            self._process.resume()

    def restart(self, group: str, protocol: str) -> None:
        """The member ends in order, and the next one uses this protocol."""
        with self._lock:
            self.protocols[group] = protocol
            if self._process.running:
                self._process.close(self._members[group])
                self._start(group)

    def replace(self, member: str) -> None:
        """Start another one in place of a member that gave up, if it is one."""
        group = group_of(member)
        with self._lock:
            if self._members.get(group) == member and self._process.running:
                self._start(group)

    def _start(self, group: str) -> None:
        name = self._members[group] = f"{group}-{self.name}-{next(self._numbers)}"
        protocol = self.protocols[group]
        classic = CLASSIC | {"partition_assignment_strategy": RANGE[self._client]} if protocol == "classic" else {}
        own = {"group_id": group, "client_id": name, "group_protocol": protocol}
        self._process.start(name, **COMMON, **OF_CLIENT[self._client], **self._settings, **own, **classic)


class Applications:
    """All of them, and what is known of their groups."""

    def __init__(
        self,
        groups: Mapping[str, GroupProtocol],
        history: History,
        bootstrap: str,
        partitions: Sequence[Partition],
        directory: Path,
    ) -> None:
        self._history = history
        self.groups = {
            name: GroupHistory(name, protocol, (GROUP_TOPIC, java_hash(name) % GROUP_PARTITIONS))
            for name, protocol in groups.items()
        }
        for group in self.groups.values():
            group.commit_looks = {partition: [] for partition in partitions}  # looked at while it is filled
        self.readers = {
            name: Reader(f"the group {name}", committed_only=True, reads={p: [] for p in partitions}, is_shared=True)
            for name in groups
        }
        history.readers += self.readers.values()
        settings = {"bootstrap_servers": bootstrap, "topics": partitions[0][0]}
        self.all = []
        for number, client in enumerate(CLIENTS if groups else ()):
            process = (JavaMembers if client == "java" else ConfluentMembers)(
                self._hear, directory / f"app-{number}.log"
            )
            application = Application(f"{client}{number}", client, process, settings)
            application.protocols = {
                name: "consumer" if protocol is GroupProtocol.CONSUMER else "classic"
                for name, protocol in groups.items()
            }
            self.all.append(application)
        self.gave_up: SimpleQueue[str] = SimpleQueue()
        self.given_up = 0
        self.roller = Roller(self, history)

    def start(self) -> None:
        self.activate()
        self.roller.start()

    def activate(self) -> None:
        for application in self.all:
            if application.has_crashed:
                self._history.failures.append(f"the application {application.name} ended by itself: see its .log")
            application.resume()
            application.start()

    def kill(self) -> None:
        for application in self.all:
            application.kill()

    def counts(self) -> dict[str, int]:
        """By group, how many records were handed out."""
        return {name: sum(map(len, reader.reads.values())) for name, reader in self.readers.items()}

    def wait_for_groups(self, committed: Mapping[Partition, set[int]], within_s: float) -> None:
        for reader in self.readers.values():
            wait_for_reader(reader, committed, within_s)

    def replace_those_that_gave_up(self) -> None:
        while True:
            try:
                member = self.gave_up.get_nowait()
            except Empty:
                return
            for application in self.all:
                application.replace(member)

    def _hear(self, event: Event) -> None:
        """Called by the thread that reads what a process says."""
        group = group_of(event.member)
        self.groups[group].events.append(event)
        if event.kind is Kind.RECORD:
            read = Read(event.offset, record_of(event.value))
            self.readers[group].reads[event.partitions[0]].append(read)
        elif event.kind is Kind.FAILED:
            self.given_up += 1
            self.gave_up.put(event.member)
            if self.groups[group].protocol is not GroupProtocol.ROLLED or not any(word in event.error for word in GONE):
                self._history.failures.append(f"{event.member} gave up: {event.error}")


class Roller(Task):
    """Restarts the members of rolled groups one by one, and all that gave up."""

    def __init__(self, applications: Applications, history: History) -> None:
        super().__init__("roller", history)
        self.restarts = 0
        self._applications = applications
        self._rolled = [name for name, group in applications.groups.items() if group.protocol is GroupProtocol.ROLLED]

    def work(self) -> None:
        looks = 0
        while not self.stopping.wait(LOOK_S):
            self._applications.replace_those_that_gave_up()
            looks += 1
            if looks * LOOK_S >= ROLL_S:
                looks = 0
                self._restart_one()

    def _restart_one(self) -> None:
        number = self.restarts % len(CLIENTS)
        protocol = ("consumer", "classic")[self.restarts // len(CLIENTS) % 2]
        for group in self._rolled:
            self._applications.all[number].restart(group, protocol)
            self.restarts += 1


def group_of(member: str) -> str:
    """Members are named after their group."""
    return member.partition("-")[0]
