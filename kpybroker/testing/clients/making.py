"""The clients that a broker makes: methods that `Broker` and `Cluster` have in common.

Each method has the type of the client that it makes. Without `library` that is confluent-kafka's, which is preferred;
where it is not installed, its types are unknown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from kpybroker.testing.checking import kinds
from kpybroker.testing.checking.calls import checked
from kpybroker.testing.clients import libraries

if TYPE_CHECKING:
    import aiokafka
    import confluent_kafka
    import confluent_kafka.admin
    import kafka

    from kpybroker.testing.typed.names import Codec, GroupProtocol

USER: Final = kinds.optional(kinds.text)
LIBRARY: Final = kinds.optional(kinds.one_of(*libraries.SYNC))
_GROUP: Final = kinds.optional(kinds.text)
_PROTOCOL: Final = kinds.optional(kinds.named("GroupProtocol"))
_CODEC: Final = kinds.optional(kinds.named("Codec"))


class Clients(ABC):
    """What needs nothing of a broker but its address and its logins."""

    group_protocol: GroupProtocol | None
    """That of its consumers that do not name their own."""

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """What clients are given."""

    @property
    @abstractmethod
    def users(self) -> Mapping[str, str]:
        """Who can log in, with their passwords."""

    @abstractmethod
    def _settings(self, library: str, user: str | None, extra: dict[str, Any]) -> dict[str, Any]:
        """With those of a login."""

    @checked(library=kinds.one_of(*libraries.LIBRARIES), user=USER, extra=kinds.client_settings)
    def config(self, library: libraries.Library, *, user: str | None = None, **extra: Any) -> dict[str, Any]:
        """The configuration of a client: of confluent-kafka, kafka-python, aiokafka, java or spark.

        `user`: one of `users`, by default alice. `extra` are further settings; `auto_offset_reset` is
        `auto.offset.reset` where names have dots.
        """
        return libraries.config(library, self.bootstrap_servers, self._settings(library, user, extra))

    @overload
    def admin(
        self, *, library: Literal["kafka-python"], user: str | None = None, **extra: Any
    ) -> kafka.KafkaAdminClient: ...

    @overload
    def admin(
        self, *, library: Literal["confluent-kafka"] | None = None, user: str | None = None, **extra: Any
    ) -> confluent_kafka.admin.AdminClient: ...

    @checked(library=LIBRARY, user=USER, extra=kinds.client_settings)
    def admin(self, *, library: libraries.SyncLibrary | None = None, user: str | None = None, **extra: Any) -> Any:
        """An admin client of confluent-kafka, or else of kafka-python. Close it. `user`: by default admin."""
        chosen, user = libraries.chosen(library), user or ("admin" if "admin" in self.users else None)
        return libraries.admin(chosen, self.bootstrap_servers, self._settings(chosen, user, extra))

    @overload
    def producer(
        self,
        *,
        library: Literal["kafka-python"],
        user: str | None = None,
        compression_type: Codec | None = None,
        **extra: Any,
    ) -> kafka.KafkaProducer: ...

    @overload
    def producer(
        self,
        *,
        library: Literal["confluent-kafka"] | None = None,
        user: str | None = None,
        compression_type: Codec | None = None,
        **extra: Any,
    ) -> confluent_kafka.Producer: ...

    @checked(library=LIBRARY, user=USER, compression_type=_CODEC, extra=kinds.client_settings)
    def producer(
        self,
        *,
        library: libraries.SyncLibrary | None = None,
        user: str | None = None,
        compression_type: Codec | None = None,
        **extra: Any,
    ) -> Any:
        """A producer of confluent-kafka, or else of kafka-python. Flush and close it."""
        chosen = libraries.chosen(library)
        extra = libraries.compressed(compression_type) | extra
        return libraries.producer(chosen, self.bootstrap_servers, self._settings(chosen, user, extra))

    @overload
    def consumer(
        self,
        group: str | None = None,
        *topics: str,
        library: Literal["kafka-python"],
        user: str | None = None,
        group_protocol: Literal["classic"] | None = None,
        **extra: Any,
    ) -> kafka.KafkaConsumer: ...

    @overload
    def consumer(
        self,
        group: str | None = None,
        *topics: str,
        library: Literal["confluent-kafka"] | None = None,
        user: str | None = None,
        group_protocol: GroupProtocol | None = None,
        **extra: Any,
    ) -> confluent_kafka.Consumer: ...

    @checked(
        group=_GROUP,
        topics=kinds.subscribed,
        library=LIBRARY,
        user=USER,
        group_protocol=_PROTOCOL,
        extra=kinds.client_settings,
    )
    def consumer(
        self,
        group: str | None = None,
        *topics: str,
        library: libraries.SyncLibrary | None = None,
        user: str | None = None,
        group_protocol: GroupProtocol | None = None,
        **extra: Any,
    ) -> Any:
        """A consumer of confluent-kafka, or else of kafka-python, subscribed, from the earliest offset. Close it.

        `group_protocol`: "classic", or "consumer" (KIP-848), which only confluent-kafka has; by default that of the
        broker, of the suite (`--kafka-group-protocol`), or of the library.
        """
        chosen = libraries.chosen(library)
        extra = libraries.of_protocol(chosen, group_protocol or self.group_protocol) | extra
        extra = self._settings(chosen, user, extra)
        return libraries.consumer(chosen, self.bootstrap_servers, group, topics, extra)

    @checked(group=_GROUP, topics=kinds.subscribed, user=USER, extra=kinds.client_settings)
    def share_consumer(
        self, group: str | None = None, *topics: str, user: str | None = None, **extra: Any
    ) -> confluent_kafka.ShareConsumer:
        """A member of a share group (KIP-932): confluent-kafka's share consumer, subscribed. Close it.

        The group begins at the earliest offset: its setting `share.auto.offset.reset`, which all its members share, is
        set to `auto_offset_reset`, and left alone for None.
        """
        settings = self._settings(libraries.CONFLUENT, user, extra)
        return libraries.share_consumer(self.bootstrap_servers, group, topics, settings)

    @checked(user=USER, compression_type=_CODEC, extra=kinds.client_settings)
    def aio_producer(
        self, *, user: str | None = None, compression_type: Codec | None = None, **extra: Any
    ) -> aiokafka.AIOKafkaProducer:
        """A producer of aiokafka: `async with broker.aio_producer() as producer`."""
        libraries.check_aiokafka()
        extra = libraries.compressed(compression_type) | extra
        return libraries.aio_producer(self.bootstrap_servers, self._settings(libraries.AIOKAFKA, user, extra))

    @checked(group=_GROUP, topics=kinds.subscribed, user=USER, extra=kinds.client_settings)
    def aio_consumer(
        self, group: str | None = None, *topics: str, user: str | None = None, **extra: Any
    ) -> aiokafka.AIOKafkaConsumer:
        """A consumer of aiokafka, from the earliest offset: `async with broker.aio_consumer("g", "orders") as ...`."""
        libraries.check_aiokafka()
        settings = self._settings(libraries.AIOKAFKA, user, extra)
        return libraries.aio_consumer(self.bootstrap_servers, group, topics, settings)
