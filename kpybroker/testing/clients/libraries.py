"""Configuration of client libraries, and clients of those that are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

from kpybroker.testing.errors import UsageError

if TYPE_CHECKING:
    from kpybroker.testing.typed.names import Codec, GroupProtocol

CONFLUENT: Final = "confluent-kafka"
KAFKA_PYTHON: Final = "kafka-python"
AIOKAFKA: Final = "aiokafka"
JAVA: Final = "java"
SPARK: Final = "spark"
_UNDERSCORED: Final = ("log_level", "on_delivery", "on_commit")
LIBRARIES: Final[tuple[Library, ...]] = (CONFLUENT, KAFKA_PYTHON, AIOKAFKA, JAVA, SPARK)
SYNC: Final[Mapping[SyncLibrary, str]] = {CONFLUENT: "confluent_kafka", KAFKA_PYTHON: "kafka"}
"""The libraries of `producer`, the preferred one first, with their packages."""
Library = Literal["confluent-kafka", "kafka-python", "aiokafka", "java", "spark"]
"""Those whose settings are known."""
SyncLibrary = Literal["confluent-kafka", "kafka-python"]
"""Those of `producer`."""
RESET_S: Final = 30.0
suite_protocol: GroupProtocol | None = None
"""That of consumers for which no one names one: the pytest plugin sets it while a test runs."""


def config(library: str, bootstrap_servers: str, extra: dict[str, Any]) -> dict[str, Any]:
    """What a client of this library needs, with further settings in the library's own spelling.

    As keyword arguments cannot have dots, `auto_offset_reset` is `auto.offset.reset` where names have dots.
    """
    if library in (KAFKA_PYTHON, AIOKAFKA):
        return {"bootstrap_servers": bootstrap_servers, **extra}
    if library in (CONFLUENT, JAVA):
        return {"bootstrap.servers": bootstrap_servers, **{_dotted(name): value for name, value in extra.items()}}
    if library == SPARK:
        options = {f"kafka.{_dotted(name)}" if "_" in name else name: value for name, value in extra.items()}
        return {"kafka.bootstrap.servers": bootstrap_servers, **options}
    raise unknown(library, LIBRARIES)


def _dotted(name: str) -> str:
    """Call-backs and the log level of confluent-kafka have underscores."""
    return name if name.endswith("_cb") or name in _UNDERSCORED else name.replace("_", ".")


def unknown(library: str, known: Iterable[str]) -> UsageError:
    """The error for a library that is not one of these."""
    return UsageError(f"{library!r} is no client library that is known here", f"use one of {', '.join(known)}")


def chosen(library: str | None) -> SyncLibrary:
    """The library that was named, or the first that is installed. Raises UsageError."""
    for name in SYNC:
        if name == library:
            return name
    if library is not None:
        raise unknown(library, SYNC)
    for name, package in SYNC.items():
        if importlib.util.find_spec(package) is not None:
            return name
    raise UsageError("no client library is installed", "pip install confluent-kafka, or kafka-python")


@contextmanager
def made_by(library: str) -> Iterator[None]:
    """What a library raises for settings that it does not take is a UsageError."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".replace(".__init__()", "()")
        cause = f"{library} does not make this client: {reason}"
        raise UsageError(cause, f"give settings that {library} has") from error


def admin(library: str, servers: str, extra: dict[str, Any]) -> Any:
    """`AdminClient` of confluent-kafka, `KafkaAdminClient` of kafka-python."""
    settings = config(library, servers, extra)
    if library == CONFLUENT:
        from confluent_kafka.admin import AdminClient

        with made_by(library):
            return AdminClient(settings)
    from kafka import KafkaAdminClient

    with made_by(library):
        return KafkaAdminClient(**settings)


def producer(library: str, servers: str, extra: dict[str, Any]) -> Any:
    """`Producer` of confluent-kafka, `KafkaProducer` of kafka-python."""
    settings = config(library, servers, extra)
    if library == CONFLUENT:
        from confluent_kafka import Producer

        with made_by(library):
            return Producer(settings)
    from kafka import KafkaProducer

    with made_by(library):
        return KafkaProducer(**settings)


def consumer(library: str, servers: str, group: str | None, topics: tuple[str, ...], extra: dict[str, Any]) -> Any:
    """`Consumer` of confluent-kafka, `KafkaConsumer` of kafka-python, subscribed, from the earliest offset."""
    if library == CONFLUENT:
        from confluent_kafka import Consumer

        settings = config(library, servers, {"group_id": group or _new_group(), "auto_offset_reset": "earliest"})
        with made_by(library):
            client = Consumer({**settings, **config(library, servers, extra)})
            if topics:
                client.subscribe(list(topics))
        return client
    from kafka import KafkaConsumer

    settings = {"group_id": group, "auto_offset_reset": "earliest", **extra}
    with made_by(library):
        return KafkaConsumer(*topics, **config(library, servers, settings))


def share_consumer(servers: str, group: str | None, topics: tuple[str, ...], extra: dict[str, Any]) -> Any:
    """`ShareConsumer` of confluent-kafka, subscribed; its group begins at the earliest offset. Raises UsageError."""
    try:
        from confluent_kafka import ShareConsumer  # type: ignore[attr-defined, unused-ignore]
    except ImportError:
        fix = "pip install 'confluent-kafka>=2.16'"
        raise UsageError("no installed client library has a share consumer", fix) from None
    group = group or _new_group()
    reset = extra.pop("auto_offset_reset", extra.pop("auto.offset.reset", "earliest"))
    settings = config(CONFLUENT, servers, {"group_id": group, **extra})
    with made_by(CONFLUENT):
        client = ShareConsumer(settings)
    try:
        if reset is not None:
            _set_reset(settings, group, reset)
        with made_by(CONFLUENT):
            if topics:
                client.subscribe(list(topics))
    except UsageError:
        client.close()
        raise
    return client


def _set_reset(settings: dict[str, Any], group: str, reset: str) -> None:
    """Where the group begins is a setting of the group, which librdkafka's admin client cannot name."""
    from kpybroker.client.connect import raw_configs
    from kpybroker.client.connect.errors import CommandError
    from kpybroker.client.connect.settings import Settings
    from kpybroker.client.connect.wire import WireCluster

    own = {name: str(value) for name, value in settings.items() if isinstance(value, str | int)}
    bootstrap = own.pop("bootstrap.servers")
    try:
        with WireCluster(Settings(bootstrap, own, RESET_S, "share_consumer()")) as cluster:
            raw_configs.alter(cluster, raw_configs.GROUP, group, [("share.auto.offset.reset", 0, reset)])
    except CommandError as error:
        cause = f"share.auto.offset.reset={reset} of the group {group}: {error.cause}"
        raise UsageError(cause, "let the user alter the group, or give auto_offset_reset=None") from None


def of_protocol(library: str, protocol: GroupProtocol | None) -> dict[str, Any]:
    """The setting of a consumer that is to use this group protocol, or else that of the suite. Raises UsageError where
    the library cannot.
    """
    protocol = protocol or suite_protocol
    if protocol is None:
        return {}
    if library == CONFLUENT:
        return {"group.protocol": protocol}
    if protocol == "consumer":
        raise UsageError(f"{library} has only the classic group protocol", "pip install confluent-kafka, and use that")
    return {}


def compressed(codec: Codec | None) -> dict[str, Any]:
    """The setting of a producer that is to use this codec; all have this name for it, and none means the default."""
    return {} if codec in (None, "none") else {"compression_type": codec}


def aio_producer(servers: str, extra: dict[str, Any]) -> Any:
    """`AIOKafkaProducer`, not started."""
    check_aiokafka()
    from aiokafka import AIOKafkaProducer

    with made_by(AIOKAFKA):
        return AIOKafkaProducer(**config(AIOKAFKA, servers, extra))


def aio_consumer(servers: str, group: str | None, topics: tuple[str, ...], extra: dict[str, Any]) -> Any:
    """`AIOKafkaConsumer` from the earliest offset, not started."""
    check_aiokafka()
    from aiokafka import AIOKafkaConsumer

    settings = {"group_id": group, "auto_offset_reset": "earliest", **extra}
    with made_by(AIOKAFKA):
        return AIOKafkaConsumer(*topics, **config(AIOKAFKA, servers, settings))


def check_aiokafka() -> None:
    """Raise UsageError where it is not installed."""
    if importlib.util.find_spec("aiokafka") is None:
        raise UsageError("aiokafka is not installed", "pip install aiokafka")


def _new_group() -> str:
    """librdkafka has no consumer without a group."""
    import secrets

    return f"kpybroker-{secrets.token_hex(4)}"
