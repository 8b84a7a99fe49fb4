"""What a script is: a list of steps, plain data that can be read in review.

A script is written once and played in every version of its API. A field that a version does not have is left out of
the request, so one step may hold both `topic` and `topic_id`. In strings `{name}` stands for a value: `{t}` is the
script's own prefix for names of topics and groups, every other name was bound by an earlier step from its response
(`bind={"id": "topics.0.topic_id"}`).
A string that is nothing but one name stands for the value itself, whatever its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.broker.requests.served.kafka_releases import versions_of
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode

Names = Mapping[str, Any]

WITHOUT_TWINS = frozenset({ApiKey.UPDATE_FEATURES, ApiKey.CONSUMER_GROUP_HEARTBEAT})
"""APIs whose scripts next to Kafka 3.9 show what a broker without their later versions says."""
OF_TRANSACTIONS_V2 = frozenset({ApiKey.PRODUCE, ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.WRITE_TXN_MARKERS})
"""Their later versions are those of transactions of version 2, whose ends take a producer to its next epoch: scripts
about transactions of version 1 say nothing of them.
"""
NOT_AGAIN = frozenset({"claims-cleaned"})
"""Scripts without a twin: what Kafka 4 has cleaned of small segments depends on when it is asked."""
REMOVED_KEYS = ("message.downconversion.enable", "message.format.version")
"""Settings of topics that Kafka 4 does not have."""
UNKNOWN_TOPIC_OR_PARTITION = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

_NAME = re.compile(r"\{(\w+)\}")


CREATE_TOPICS_NEXT_TO_4 = 4
"""The newest version whose response does not list the topic's settings: Kafka 4 has other ones."""
SEGMENT_BYTES = "segment.bytes"
SMALL_SEGMENTS = "{segment_bytes}"
"""In place of the key `segment.bytes`, which Kafka 4 refuses below 1 MB: each side has the name of its own for it."""


class Reference(Enum):
    """The release of Kafka that the responses to a script are compared with."""

    KAFKA_3_9 = "3.9"
    KAFKA_4_3 = "4.3"

    def versions(self, api: ApiKey) -> tuple[int, int]:
        """Those that both brokers serve."""
        (oldest, newest), own = versions_of(self.value).get(api, SERVED[api]), SERVED[api]
        return max(oldest, own[0]), min(newest, own[1])


class Response(Enum):
    NOW = "wait for the response"
    LATER = "go on, `response_to` collects it"
    NONE = "there is none (acks=0)"


@dataclass(frozen=True, slots=True)
class Ask:
    """Send one request, and compare its response."""

    api: ApiKey
    fields: Mapping[str, Any]
    version: int | None = None  # None: the one the script is played in, or the newest for any other API
    on: str = "main"  # name of the connection
    response: Response = Response.NOW
    bind: Mapping[str, str] = field(default_factory=dict)
    until: Mapping[str, Any] | None = None  # ask again until the response holds this; only the last is compared
    waits_ms: int | None = None  # compare whether the response took that long
    only: Mapping[str, str] | None = None  # path of an array -> name=prefix that its elements must have
    compared: bool = True  # False: it only waits until a broker is ready, and says nothing of how


@dataclass(frozen=True, slots=True)
class ResponseTo:
    """Collect the response of the last `Response.LATER` on a connection."""

    on: str
    bind: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Frame:
    """Send bytes that no client would; compare whether the connection ends, or what comes."""

    content: Callable[[Names], bytes]
    what: str
    on: str = "main"


@dataclass(frozen=True, slots=True)
class Close:
    """The client goes away."""

    on: str = "main"


Step = Ask | ResponseTo | Frame | Close
OF_RESPONSE = ("response", "bind", "until", "waits_ms", "only", "compared")
"""Fields of `Ask`."""


@dataclass(frozen=True, slots=True)
class Script:
    """`versions` defaults to every version that both brokers serve. `about` says what the script is after.

    `is_secured`: on brokers with an authorizer, that allow what no rule is about. `is_wide`: not in every run.
    """

    name: str
    api: ApiKey
    about: str
    steps: tuple[Step, ...]
    versions: tuple[int, int]
    reference: Reference = Reference.KAFKA_3_9
    is_secured: bool = False
    is_wide: bool = False

    def in_later_versions(self) -> Script | None:
        """The same next to Kafka 4.3.1, in the versions that Kafka 3.9 does not have; None if there are none.

        A script of certain old versions has no such twin.
        """
        newest_before = Reference.KAFKA_3_9.versions(self.api)[1]
        oldest, newest = Reference.KAFKA_4_3.versions(self.api)
        oldest = max(oldest, newest_before + 1)
        if self.reference is not Reference.KAFKA_3_9 or not self._has_twin:
            return None
        if self.versions[1] < newest_before or oldest > newest:
            return None
        steps = tuple(later for step in self.steps for later in _next_to_4(step))
        return replace(
            self, name=f"{self.name}-4", versions=(oldest, newest), reference=Reference.KAFKA_4_3, steps=steps
        )

    @property
    def _has_twin(self) -> bool:
        is_of_version_1 = self.name.startswith("txn-") and self.api in OF_TRANSACTIONS_V2
        return self.api not in WITHOUT_TWINS and self.name not in NOT_AGAIN and not is_of_version_1

    def version_of(self, step: Ask, played: int) -> int:
        if step.version is None and step.api is self.api:
            return played
        oldest, newest = self.reference.versions(step.api)
        if self.reference is Reference.KAFKA_3_9:
            return newest if step.version is None else step.version
        if step.api is ApiKey.CREATE_TOPICS and not step.bind:
            newest = CREATE_TOPICS_NEXT_TO_4
        return newest if step.version is None else min(max(step.version, oldest), newest)


def script(
    name: str,
    api: ApiKey,
    about: str,
    *steps: Step | Sequence[Step],
    versions: tuple[int, int] | None = None,
    reference: Reference = Reference.KAFKA_3_9,
) -> Script:
    """Lists among the steps are flattened, so that helpers may return several."""
    flat: list[Step] = []
    for step in steps:
        flat.extend(step) if isinstance(step, Sequence) else flat.append(step)
    return Script(name, api, about, tuple(flat), versions or reference.versions(api), reference)


def ask(api: ApiKey, *, v: int | None = None, on: str = "main", **fields: Any) -> Ask:
    """`fields` are those of the request, and those of `Ask` that say what is done with its response."""
    of_response = {name: value for name in OF_RESPONSE if (value := fields.pop(name, None)) is not None}
    return Ask(api, fields, v, on, **of_response)


def response_to(on: str, **bind: str) -> ResponseTo:
    return ResponseTo(on, bind)


def _next_to_4(step: Step) -> list[Step]:
    """The step for Kafka 4, which makes and deletes topics in the background: it is waited for."""
    if not isinstance(step, Ask) or step.response is not Response.NOW:
        return [step]
    if step.api is ApiKey.CREATE_TOPICS:
        topics = [{**topic, "configs": _settings_of_4(topic.get("configs", ()))} for topic in step.fields["topics"]]
        counts = {topic["name"]: topic["num_partitions"] for topic in topics}
        return [replace(step, fields={**step.fields, "topics": topics}), *led(counts)]
    if step.api is ApiKey.DELETE_TOPICS:
        return [step, *(gone(name) for name in step.fields.get("topic_names", ()))]
    return [step]


def _settings_of_4(configs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [
        {**one, "name": SMALL_SEGMENTS} if one["name"] == SEGMENT_BYTES else one
        for one in configs
        if one["name"] not in REMOVED_KEYS
    ]


def led(topics: Mapping[str, int]) -> list[Step]:
    """Wait until topics with so many partitions are in the metadata, and the broker leads all of them."""
    named = [{"name": name, "topic_id": bytes(16)} for name in topics]
    known = ask(
        ApiKey.METADATA,
        v=12,
        topics=named,
        until={f"topics.{number}.error_code": 0 for number in range(len(named))},
        compared=False,
    )
    return [known, *(_offsets_known(name, range(count), 0) for name, count in topics.items())]


def gone(name: str) -> Ask:
    """Wait until the broker has given up a topic that was deleted."""
    return _offsets_known(name, range(1), UNKNOWN_TOPIC_OR_PARTITION)


def _offsets_known(name: str, partitions: Sequence[int], code: int) -> Ask:
    places = [{"partition_index": index, "timestamp": -1} for index in partitions]
    until = {f"topics.0.partitions.{index}.error_code": code for index in partitions}
    topics = [{"name": name, "partitions": places}]
    return ask(ApiKey.LIST_OFFSETS, v=9, replica_id=-1, topics=topics, until=until, compared=False)


def fill_in(value: Any, names: Names) -> Any:
    """`value` with every `{name}` replaced."""
    if isinstance(value, str):
        whole = _NAME.fullmatch(value)
        if whole:
            return names[whole[1]]
        return _NAME.sub(lambda match: str(names[match[1]]), value)
    if isinstance(value, Mapping):
        return {key: fill_in(inner, names) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [fill_in(inner, names) for inner in value]
    build = getattr(value, "build", None)
    return value if build is None else build(names)


def at(plain: Any, path: str) -> Any:
    """The value at `topics.0.partitions.1.error_code`."""
    for part in path.split("."):
        plain = plain[int(part)] if isinstance(plain, list) else plain[part]
    return plain
