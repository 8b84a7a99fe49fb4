"""`DirectCluster`: a `Cluster` whose admin client is ours.

Its calls block, and return futures that are done, in the shapes of confluent-kafka: the same functions take both. One
thread at a time uses it. Its connections stay open between two pages, at most KEPT_S, and are left where a broker has
closed one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any, Final

from kpybroker.client.connect import sasl, tls
from kpybroker.client.connect.admin import Cluster, ErrorWatch
from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import Deadline, WireCluster
from kpybroker.client.direct import changes, groups, security, topics

KEPT_S: Final = 30.0
"""After so long they are opened again."""


def can_be_used(settings: Settings) -> bool:
    """Whether our own connections can log in as librdkafka does: they know fewer mechanisms and files of keys."""
    if settings.protocol.startswith("SASL") and not sasl.is_known(settings.properties):
        return False
    if tls.is_tls(settings.protocol):
        try:
            tls.context(settings.properties)
        except CommandError:
            return False
    return True


class Done:
    """A future that is done: with a result, or with the CommandError that it is. One of the standard library has a
    lock, which a page of ten thousand partitions has no need of.
    """

    __slots__ = ("_found",)

    def __init__(self, found: Any) -> None:
        self._found = found

    def done(self) -> bool:
        """It is."""
        return True

    def result(self, timeout: float | None = None) -> Any:
        """At once. Raises CommandError."""
        if isinstance(self._found, CommandError):
            raise self._found
        return self._found


class DirectCluster(Cluster):
    """The cluster that `settings` name. Nothing is sent before the first call; close it at the end."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.watch = ErrorWatch()
        self.deadline = Deadline()
        """Of all requests until the next `begin` of it, by whichever function."""
        self.admin = DirectAdmin(settings, self.deadline)

    def metadata(self) -> Any:
        """Brokers and topics, as ``AdminClient.list_topics`` has them."""
        return self.admin.list_topics()

    def topic(self, name: str) -> Any:
        """The same, without asking for all topics."""
        return self.admin.topics.one(name)

    def wire(self) -> AbstractContextManager[WireCluster]:
        """Its own connections, which stay open. Raises CommandError."""
        return nullcontext(self.admin.wire)

    def group_offsets(
        self, names: Iterable[str], parts: Sequence[Any] | None = None
    ) -> list[tuple[str, Any, CommandError | None]]:
        """One request to each coordinator, where librdkafka has one for each group."""
        return self.results(_done(groups.committed_by_group(self.admin.wire, list(names), parts)))

    def error(self, error: Any) -> CommandError:
        """A failed call: it is a CommandError already, perhaps in an exception of confluent-kafka."""
        found = error if isinstance(error, CommandError) else error.args[0]
        assert isinstance(found, CommandError), "our calls raise nothing else"
        return found

    def is_usable(self) -> bool:
        """Whether its connections can be used again."""
        is_usable: bool = self.admin.is_usable()
        return is_usable

    def close(self) -> None:
        """Close its connections."""
        self.admin.close()


class DirectAdmin:
    """The calls of confluent-kafka's ``AdminClient`` that a `DirectCluster` needs. All of them raise CommandError."""

    def __init__(self, settings: Settings, deadline: Deadline) -> None:
        self._settings = settings
        self._deadline = deadline
        self._wire: WireCluster | None = None
        self._opened_at = 0.0
        self._taken_at = 0.0
        self._topics: topics.Known | None = None

    def poll(self, timeout: float) -> None:
        """Nothing arrives between two calls."""

    @property
    def wire(self) -> WireCluster:
        """The connections, opened now if they are not, with the brokers that Metadata named since `is_usable`."""
        wire = self._connected()
        if wire.known_at < self._taken_at:
            wire.refresh()
        return wire

    def _connected(self) -> WireCluster:
        if self._wire is None:
            self._wire = WireCluster(self._settings, self._deadline)
            self._opened_at = time.monotonic()
        return self._wire

    @property
    def topics(self) -> topics.Known:
        """What Metadata said of topics since the connections were last taken up."""
        if self._topics is None:
            self._topics = topics.Known(self._connected())
        return self._topics

    def is_usable(self) -> bool:
        """Whether the connections are open and young enough, or not needed yet. Metadata is asked again."""
        self._topics = None
        self._taken_at = time.monotonic()
        return self._wire is None or (time.monotonic() - self._opened_at < KEPT_S and self._wire.is_open())

    def close(self) -> None:
        """Close the connections."""
        if self._wire is not None:
            self._wire.close()
        self._wire = self._topics = None

    # --- topics

    def list_topics(self, **_: Any) -> Any:
        """Brokers and topics."""
        return self.topics.everything()

    def describe_topics(self, collection: Any, **_: Any) -> dict[str, Done]:
        """Each topic with its id and partitions."""
        return _done(self.topics.described(collection.topic_names))

    def list_offsets(self, request: Mapping[Any, Any], isolation_level: Any = None, **_: Any) -> Mapping[Any, Done]:
        """An offset of each partition. A specification is a timestamp to the protocol, below zero a place."""
        level = 0 if isolation_level is None else int(isolation_level.value)
        places = {(part.topic, part.partition): int(spec._value) for part, spec in request.items()}
        found = self.topics.offsets(places, level)
        return {part: Done(found[part.topic, part.partition]) for part in request}

    # --- changes

    def create_topics(self, wanted: Iterable[Any], validate_only: bool = False, **_: Any) -> dict[str, Done]:
        """Create topics, or with `validate_only` have them checked."""
        return _done(changes.create_topics(self.wire, wanted, validate_only))

    def create_partitions(self, wanted: Iterable[Any], validate_only: bool = False, **_: Any) -> dict[str, Done]:
        """Add partitions, or with `validate_only` have it checked."""
        return _done(changes.create_partitions(self.wire, wanted, validate_only))

    def delete_topics(self, names: Iterable[str], **_: Any) -> dict[str, Done]:
        """Delete topics with all their records."""
        return _done(changes.delete_topics(self.wire, names))

    def delete_records(self, parts: Iterable[Any], **_: Any) -> dict[Any, Done]:
        """Delete the records below the offset of each partition."""
        wanted = {(part.topic, part.partition): part for part in parts}
        offsets = {place: part.offset for place, part in wanted.items()}
        found = changes.delete_records(self.wire, self.topics, offsets)
        return {wanted[place]: Done(one) for place, one in found.items()}

    def incremental_alter_configs(
        self, resources: Iterable[Any], validate_only: bool = False, **_: Any
    ) -> dict[Any, Done]:
        """Change settings, or with `validate_only` have the changes checked."""
        found = changes.alter_configs(self.wire, resources, validate_only)
        return {one: Done(error) for one, error in found.items()}

    def describe_configs(self, resources: Iterable[Any], **_: Any) -> dict[Any, Done]:
        """The settings of each resource."""
        return {one: Done(found) for one, found in changes.describe_configs(self.wire, resources).items()}

    # --- access

    def create_acls(self, bindings: Iterable[Any], **_: Any) -> dict[Any, Done]:
        """Create these ACLs, or say why one cannot be created."""
        return {one: Done(error) for one, error in security.create_acls(self.wire, bindings).items()}

    def describe_acls(self, wanted: Any, **_: Any) -> Done:
        """The ACLs that a filter fits."""
        return Done(security.describe_acls(self.wire, wanted))

    def delete_acls(self, filters: Iterable[Any], **_: Any) -> dict[Any, Done]:
        """Delete the ACLs that filters fit."""
        return {one: Done(found) for one, found in security.delete_acls(self.wire, filters).items()}

    def alter_user_scram_credentials(self, alterations: Iterable[Any], **_: Any) -> dict[str, Done]:
        """Set and delete credentials."""
        return _done(security.alter_credentials(self.wire, alterations))

    # --- groups

    def list_consumer_groups(self, **_: Any) -> Done:
        """All groups that are not of another kind's request, and the brokers that did not list theirs."""
        listings, errors = groups.listed(self.wire)
        return Done(SimpleNamespace(valid=listings, errors=errors))

    def describe_consumer_groups(self, names: Iterable[str], **_: Any) -> dict[str, Done]:
        """Each group as a `RawGroup`."""
        return _done(groups.described(self.wire, list(names)))

    def list_consumer_group_offsets(self, requests: Iterable[Any], **_: Any) -> dict[str, Done]:
        """The committed offsets of one group: of the partitions that are named, or all."""
        return {one.group_id: Done(groups.committed(self.wire, one.group_id, one.topic_partitions)) for one in requests}

    def delete_consumer_groups(self, names: Iterable[str], **_: Any) -> dict[str, Done]:
        """Delete groups without members, with their offsets."""
        return {name: Done(groups.delete(self.wire, name)) for name in names}

    def alter_consumer_group_offsets(self, requests: Iterable[Any], **_: Any) -> dict[str, Done]:
        """Commit offsets of a group without members."""
        return {one.group_id: Done(groups.commit(self.wire, one.group_id, one.topic_partitions)) for one in requests}


def _done(found: Mapping[str, Any]) -> dict[str, Done]:
    return {name: Done(one) for name, one in found.items()}
