"""A cluster that was there before, for `--kafka-bootstrap`: what a `Broker` offers, as far as stock clients can do it.

Everything else skips the test, and says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from kpybroker.testing.clients import GroupProtocol

WAIT_S = 30.0


class ExternalKafka:
    """Clients as `kpybroker.testing.Broker` makes them; topics and records through confluent-kafka or kafka-python."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = self.bootstrap_server = bootstrap_servers
        self.group_protocol: GroupProtocol | None = None

    def __repr__(self) -> str:
        return f"<ExternalKafka {self.bootstrap_servers}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        pytest.skip(f"--kafka-bootstrap={self.bootstrap_servers}: `{name}` needs a broker of kpybroker")

    # --- clients

    def config(self, library: str, **extra: Any) -> dict[str, Any]:
        """See `Broker.config`."""
        from kpybroker.testing import clients

        return clients.config(library, self.bootstrap_servers, extra)

    def admin(self, *, library: str | None = None, **extra: Any) -> Any:
        """See `Broker.admin`."""
        from kpybroker.testing import clients

        return clients.admin(clients.chosen(library), self.bootstrap_servers, extra)

    def producer(self, *, library: str | None = None, **extra: Any) -> Any:
        """See `Broker.producer`."""
        from kpybroker.testing import clients

        return clients.producer(clients.chosen(library), self.bootstrap_servers, extra)

    def consumer(
        self,
        group: str | None = None,
        *topics: str,
        library: str | None = None,
        group_protocol: GroupProtocol | None = None,
        **extra: Any,
    ) -> Any:
        """See `Broker.consumer`."""
        from kpybroker.testing import clients

        library = clients.chosen(library)
        extra = clients.of_protocol(library, group_protocol or self.group_protocol) | extra
        return clients.consumer(library, self.bootstrap_servers, group, topics, extra)

    def aio_producer(self, **extra: Any) -> Any:
        """See `Broker.aio_producer`."""
        from kpybroker.testing import clients

        return clients.aio_producer(self.bootstrap_servers, extra)

    def aio_consumer(self, group: str | None = None, *topics: str, **extra: Any) -> Any:
        """See `Broker.aio_consumer`."""
        from kpybroker.testing import clients

        return clients.aio_consumer(self.bootstrap_servers, group, topics, extra)

    # --- topics and records

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """See `Broker.create_topic`. It returns when the cluster has responded, and lists the topic."""
        from kpybroker.testing import clients
        from kpybroker.testing.looking import text_of

        keys = {key: text_of(value) for key, value in (config or {}).items()}
        admin = self.admin()
        if clients.chosen(None) == clients.CONFLUENT:
            from confluent_kafka.admin import NewTopic

            factor = -1 if replication_factor is None else replication_factor
            (created,) = admin.create_topics([NewTopic(name, partitions, factor, config=keys)]).values()
            created.result(WAIT_S)
            return
        from kafka.admin import NewTopic as KafkaPythonTopic

        factor = -1 if replication_factor is None else replication_factor
        admin.create_topics([KafkaPythonTopic(name, partitions, factor, topic_configs=keys)])
        admin.close()

    def produce(self, topic: str, records: Iterable[Any]) -> None:
        """See `Broker.produce`; values, or pairs of key and value. Returns when all are acknowledged."""
        from kpybroker.testing.looking import to_value

        producer = self.producer(library="confluent-kafka")
        failures: list[Any] = []
        for record in records:
            key, value = record if isinstance(record, tuple) else (None, record)
            producer.produce(topic, to_value(value), to_value(key), on_delivery=lambda error, _: failures.append(error))
        assert producer.flush(WAIT_S) == 0, f"{topic}: records were not acknowledged within {WAIT_S:g} s"
        assert not any(failures), f"{topic}: {next(filter(None, failures))}"
