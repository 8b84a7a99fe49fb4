"""The names of Kafka that a test writes, as types: the contents of `kpybroker/testing/typed/names.py`.

They are those of the tables that the broker itself works with, so that an editor completes what the broker knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, get_args

NAMES = Path(__file__).resolve().parent.parent / "kpybroker" / "testing" / "typed" / "names.py"


class Alias(NamedTuple):
    """A type alias: its name, the words, what they are."""

    name: str
    words: tuple[str, ...]
    doc: str


def aliases() -> tuple[Alias, ...]:
    """All of them. The tables are imported here: they need the message classes, which are generated first."""
    from kpybroker.broker.requests.served.kafka_releases import RELEASES
    from kpybroker.config.keys.own import KAFKA_VERSIONS
    from kpybroker.control.development.security import MECHANISMS
    from kpybroker.control.levers.disk import OPERATIONS
    from kpybroker.control.methods.records import Isolation
    from kpybroker.control.rules.acts import Damage, Side
    from kpybroker.core.streams_group.values import STREAMS_GROUP_TYPE
    from kpybroker.core.transaction.values import TransactionState
    from kpybroker.wire.api import API_INFO
    from kpybroker.wire.compression import CODEC_NAMES
    from kpybroker.wire.errors import ErrorCode

    return (
        Alias("ApiName", _words(info.name for info in API_INFO.values()), "An API, by Kafka's name."),
        Alias(
            "ErrorName",
            _words(code.name for code in ErrorCode if code is not ErrorCode.NONE),
            "An error, by Kafka's name.",
        ),
        Alias("Release", _words(RELEASES), "A release of Kafka whose versions of APIs are known."),
        Alias("BrokerRelease", _words(KAFKA_VERSIONS), "A release of Kafka whose place a broker can take."),
        Alias("GroupState", _group_states(), "The state of a group, of any type."),
        Alias("GroupProtocol", _group_types(), "How a group's members get their partitions."),
        Alias("GroupType", (*_group_types(), STREAMS_GROUP_TYPE), "The type of a group that commits offsets."),
        Alias("TransactionState", _words(one.title for one in TransactionState), "The state of a transactional id."),
        Alias("Isolation", get_args(Isolation), "Whether records of open and aborted transactions are read."),
        Alias("Codec", _words(CODEC_NAMES), "How a producer compresses."),
        Alias("Sasl", _words(MECHANISMS), "How clients log in."),
        Alias("Moment", _words(one.value for one in Side), "Before the broker does what is asked for, or after."),
        Alias("Damage", _words(one.value for one in Damage), "What is wrong with a batch."),
        Alias("DiskOperation", OPERATIONS, "What the disk is asked to do."),
    )


def _words(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(words)


def _group_states() -> tuple[str, ...]:
    """A dead group is one that is not there."""
    from kpybroker.core.consumer_group.values import ConsumerGroupState
    from kpybroker.core.group.values import GroupState
    from kpybroker.core.streams_group.values import StreamsGroupState

    classic = [state.value for state in GroupState if state is not GroupState.DEAD]
    newer = [state.value for states in (ConsumerGroupState, StreamsGroupState) for state in states]
    return _words(dict.fromkeys([*classic, *newer]))


def _group_types() -> tuple[str, ...]:
    from kpybroker.core.consumer_group.values import CONSUMER_GROUP_TYPE
    from kpybroker.core.group.values import CLASSIC_GROUP_TYPE

    return CLASSIC_GROUP_TYPE, CONSUMER_GROUP_TYPE


def module(banner: str) -> str:
    """The whole file."""
    return "\n".join(_lines(banner)) + "\n"


def _lines(banner: str) -> Iterator[str]:
    yield banner
    yield '"""Kafka\'s names as types: what a test may write, and what it is given."""'
    yield ""
    yield "from collections.abc import Sequence"
    yield "from typing import Literal"
    yield ""
    for alias in aliases():
        yield f"{alias.name} = Literal["
        yield from (f'    "{word}",' for word in alias.words)
        yield "]"
        yield f'"""{alias.doc}"""'
    yield "Apis = ApiName | int | Sequence[ApiName | int]"
    yield '"""APIs by name or key, one or several."""'
