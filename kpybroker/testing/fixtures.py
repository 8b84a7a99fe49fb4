"""The types of the pytest plugin's fixtures that are no classes of the kit: `def test(kafka_producer: Producer): ...`

The fixtures themselves are in `kpybroker.pytest_plugin`. Client libraries are imported for type checkers alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, overload

if TYPE_CHECKING:
    from typing import Unpack

    import confluent_kafka
    import confluent_kafka.admin

    from kpybroker.testing.broker import Broker
    from kpybroker.testing.cluster import Cluster
    from kpybroker.testing.look import Request
    from kpybroker.testing.running.options import BrokerKeywords
    from kpybroker.testing.typed.names import Apis

    Producer: TypeAlias = confluent_kafka.Producer
    Consumer: TypeAlias = confluent_kafka.Consumer
    ShareConsumer: TypeAlias = confluent_kafka.ShareConsumer
    Admin: TypeAlias = confluent_kafka.admin.AdminClient
else:
    Producer = Consumer = ShareConsumer = Admin = Any


class BrokerFactory(Protocol):
    """`kafka_broker_factory`: a `Broker`, or with `brokers=` a `Cluster`, which ends with the test."""

    @overload
    def __call__(self, brokers: Literal[1] = 1, **options: Unpack[BrokerKeywords]) -> Broker: ...

    @overload
    def __call__(self, brokers: Literal[2, 3, 4, 5, 6, 7, 8, 9], **options: Unpack[BrokerKeywords]) -> Cluster: ...

    @overload
    def __call__(self, brokers: int, **options: Unpack[BrokerKeywords]) -> Broker | Cluster: ...


class Requests(Protocol):
    """`kafka_requests`: `Broker.requests`, of those since the test began."""

    def __call__(
        self,
        api: Apis | None = None,
        *,
        client_id: str | None = None,
        broker: int | None = None,
        since: int | None = None,
        limit: int = ...,
    ) -> list[Request]:
        """The requests that arrived, oldest first."""
        ...
