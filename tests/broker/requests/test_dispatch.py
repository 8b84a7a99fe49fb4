"""What is advertised is served; an invalid frame ends the connection; a failure has its API's error response."""

from __future__ import annotations

import gc
import logging
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.handlers import routes
from kpybroker.broker.handlers.groups import list_groups
from kpybroker.broker.handlers.records import list_offsets
from kpybroker.broker.loop.steps import Pending, Steps
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.broker.requests.dispatch import Dispatcher, Route
from kpybroker.broker.requests.log_fields import CURRENT
from kpybroker.broker.requests.served.apis import CLIENT_METRICS, NEEDS_SHARE_VERSION, NEEDS_STREAMS_VERSION, SERVED
from kpybroker.broker.requests.stage_times import StageTimes
from kpybroker.core.features import SUPPORTED, Ranges
from kpybroker.core.tree import BadArguments, SystemFailure
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError
from kpybroker.wire.headers import RequestHeader, encode_request_header
from kpybroker.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kpybroker.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest
from tests.support.brokers.running_broker import CLIENT, ask, create_topic, running_broker
from tests.support.storage.batches import NOW_MS


@pytest.mark.parametrize("key", SERVED, ids=lambda key: key.name)
def test_the_table_says_what_the_ledger_says(key: ApiKey) -> None:
    ledger = routes.load(key).LEDGER
    assert ledger.api_key is key
    assert (ledger.min_version, ledger.max_version) == SERVED[key]
    oldest, newest = API_INFO[key].valid_versions
    assert oldest <= ledger.min_version <= ledger.max_version <= newest


@pytest.mark.parametrize("key", SERVED, ids=lambda key: key.name)
def test_every_version_has_an_error_response_that_can_be_encoded(key: ApiKey) -> None:
    from kpybroker.broker.requests.context import RequestContext
    from kpybroker.core.authorizer import AllowAll
    from kpybroker.wire.codec import encode
    from kpybroker.wire.errors import KafkaError

    oldest, newest = SERVED[key]
    for version in range(oldest, newest + 1):
        route = Route(key, version, routes.load(key))
        context = RequestContext(CLIENT, AllowAll(), key, version)
        error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        request: Any = route.request_class()
        if key is ApiKey.PRODUCE:
            request.acks = 1
        encode(route.error_response(request, context, error), version)


async def test_the_response_to_a_later_version_lists_the_versions_to_use(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        header = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 99, 5, "future"))
        frame = (await broker.dispatcher.respond(bytearray(header + b"\xff\xfe\xfd"), CLIENT)).frame
        assert frame is not None
        body = frame[4:]
        assert body[:4] == (5).to_bytes(4, "big")
        response = decode(ApiVersionsResponse, body[4:], 0)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [(api.api_key, api.min_version, api.max_version) for api in response.api_keys] == [(18, 0, 4)]


@pytest.mark.parametrize("features", [SUPPORTED, {}], ids=["newest", "none"])
@pytest.mark.parametrize("version", range(5))
async def test_api_versions_names_all_that_is_served(tmp_path: Path, version: int, features: Ranges) -> None:
    async with running_broker(tmp_path, features=features) as broker:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
        response = await ask(broker, request, version)
        listed = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        hidden = CLIENT_METRICS if features else CLIENT_METRICS | NEEDS_SHARE_VERSION | NEEDS_STREAMS_VERSION
        served = {key: SERVED[key] for key in SERVED if key not in hidden}
        if not features:
            served[ApiKey.CONSUMER_GROUP_HEARTBEAT] = (0, 0)  # as Kafka 3.9
            del served[ApiKey.CONSUMER_GROUP_DESCRIBE], served[ApiKey.LIST_CONFIG_RESOURCES]
        assert listed == served


@pytest.mark.parametrize(
    ("name", "version"),
    [("librdkafka", "2.16.0"), ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0"), ("apache-kafka-java", "4.3.1")],
)
async def test_clients_that_wait_for_new_group_protocols_find_their_apis(
    tmp_path: Path, name: str, version: str
) -> None:
    async with running_broker(tmp_path, features={}) as broker:
        request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        response = await ask(broker, request, 3)
        listed = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        without = {ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.LIST_CONFIG_RESOURCES, *CLIENT_METRICS}
        without |= (NEEDS_SHARE_VERSION | NEEDS_STREAMS_VERSION) - {ApiKey.SHARE_GROUP_HEARTBEAT}
        assert listed == {key: SERVED[key] for key in SERVED if key not in without}


async def test_a_client_that_gives_itself_no_proper_name_is_refused(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        request = ApiVersionsRequest(client_software_name="-", client_software_version="1")
        assert (await ask(broker, request, 3)).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("key", "version"), [(ApiKey.PRODUCE, 12), (ApiKey.METADATA, 99), (1234, 0), (-1, 0)])
async def test_what_is_not_served_ends_the_connection(tmp_path: Path, key: int, version: int) -> None:
    async with running_broker(tmp_path) as broker:
        header = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff" + bytes(20)
        with pytest.raises(ProtocolError):
            await broker.dispatcher.respond(bytearray(header), CLIENT)


@pytest.mark.parametrize(
    ("key", "version", "text"),
    [
        (1234, 0, "API key 1234 is not served here"),
        (ApiKey.PRODUCE, 14, "PRODUCE version 14 is not served; 0 to 13 are"),
        (ApiKey.ENVELOPE, 0, "ENVELOPE is not served here$"),
    ],
)
async def test_the_error_says_what_is_not_served_and_the_connection_who_asked(
    tmp_path: Path, key: int, version: int, text: str
) -> None:
    async with running_broker(tmp_path) as broker:
        client = PlainConnectionInfo()
        header = encode_request_header(RequestHeader(key, version, 1, "orders"))
        with pytest.raises(ProtocolError, match=text):
            await broker.dispatcher.respond(bytearray(header), client)
        assert client.client_id == "orders"


async def test_a_handlers_mistake_becomes_its_apis_response(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_broker(tmp_path) as broker:
        monkeypatch.setattr(broker.groups, "list_groups", lambda *_: 1 / 0)
        assert (await ask(broker, ListGroupsRequest(), 4)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


class FailingHandler:
    """A handler of ListGroups that fails in one of the ways in which a handler can."""

    LEDGER = list_groups.LEDGER
    FAST_VERSIONS = (0, 5)
    error_response = staticmethod(list_groups.error_response)

    def __init__(self, way: str, error: Exception) -> None:
        self.way = way
        self.error = error

    def handle_fast(self, *_: Any) -> None:
        if self.way == "fast":
            raise self.error

    def handle(self, *_: Any) -> Any:
        return {"coroutine": self._in_a_coroutine, "steps": self._in_steps}.get(self.way, self._at_once)()

    def _at_once(self) -> None:
        raise self.error

    async def _in_a_coroutine(self) -> None:
        await trio.lowlevel.checkpoint()
        raise self.error

    def _in_steps(self) -> Steps[None]:
        yield trio.lowlevel.checkpoint
        raise self.error


@pytest.mark.parametrize("elements", [0, 10_000])
@pytest.mark.parametrize("way", ["fast", "at once", "coroutine", "steps"])
async def test_an_error_has_one_response_however_the_request_is_handled(
    tmp_path: Path, way: str, elements: int
) -> None:
    async with running_broker(tmp_path) as broker:
        request = ListGroupsRequest(states_filter=[f"{n}" for n in range(elements)])

        def dispatcher(error: Exception) -> None:
            broker.dispatcher = Dispatcher(broker, lambda _: FailingHandler(way, error))

        for error, code in (
            (KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED), ErrorCode.GROUP_AUTHORIZATION_FAILED),
            (ZeroDivisionError(), ErrorCode.UNKNOWN_SERVER_ERROR),
        ):
            dispatcher(error)
            assert (await ask(broker, request, 4)).error_code == code
        dispatcher(ProtocolError("what ends a connection"))
        with pytest.raises(ProtocolError):
            await ask(broker, request, 4)


@pytest.mark.parametrize("is_timed", [False, True])
async def test_a_handler_that_no_task_awaits_is_closed(
    tmp_path: Path, is_timed: bool, recwarn: pytest.WarningsRecorder
) -> None:
    """A connection may end after its request was taken and before its task runs: nothing is said of it."""
    async with running_broker(tmp_path) as broker:
        started = []

        class Waiting(FailingHandler):
            async def _in_a_coroutine(self) -> None:
                started.append(self)

        dispatcher = Dispatcher(broker, lambda _: Waiting("coroutine", KafkaError(ErrorCode.NONE)))
        if is_timed:
            dispatcher.time_requests(StageTimes(lambda: 0.0))
        frame = encode_request_header(RequestHeader(ApiKey.LIST_GROUPS, 4, 7, "c")) + encode(ListGroupsRequest(), 4)
        unfinished = dispatcher.respond_now(bytearray(frame), PlainConnectionInfo())
        assert isinstance(unfinished, Pending)
        unfinished.close()
        del unfinished
        gc.collect()
        assert not started
    assert not [warning for warning in recwarn if "never awaited" in str(warning.message)]


class OddResponse:
    """A handler of ListGroups whose response no protocol can carry."""

    LEDGER = list_groups.LEDGER
    error_response = staticmethod(list_groups.error_response)

    @staticmethod
    def handle(*_: Any) -> Any:
        return ListGroupsResponse(groups=[ListGroupsResponse.ListedGroup(group_id="g" * 40_000)])


async def test_a_response_that_cannot_be_encoded_is_its_apis_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(tmp_path) as broker:
        broker.dispatcher = Dispatcher(broker, lambda _: OddResponse())
        for version in (1, 4):
            response = await ask(broker, ListGroupsRequest(), version)
            assert (response.error_code, response.groups) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
    assert caplog.text.count("Unexpected error handling LIST_GROUPS") == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SystemFailure(message="the disk is full"), ErrorCode.KAFKA_STORAGE_ERROR),
        (BadArguments("/config/users/..", "no name"), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_a_failure_of_the_tree_has_a_code_and_no_traceback(
    tmp_path: Path, error: Exception, code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(tmp_path) as broker:
        broker.dispatcher = Dispatcher(broker, lambda _: FailingHandler("coroutine", error))
        assert (await ask(broker, ListGroupsRequest(), 4)).error_code == code
    (line,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert line.exc_info is None
    assert str(error) in line.getMessage()


class Noting(PlainConnectionInfo):
    """Notes how its client may leave."""

    def __init__(self) -> None:
        super().__init__()
        self.serves_rest: list[bool] = []

    def may_leave(self, *, serves_rest: bool = False) -> AbstractContextManager[None]:
        self.serves_rest.append(serves_rest)
        return nullcontext()


@pytest.mark.parametrize(("timestamp", "serves_rest"), [(NOW_MS, [False]), (list_offsets.LATEST, [])])
async def test_a_client_may_leave_where_a_search_is_for_it_alone(
    tmp_path: Path, timestamp: int, serves_rest: list[bool]
) -> None:
    connection = Noting()
    wanted = ListOffsetsRequest.ListOffsetsPartition(timestamp=timestamp)
    topic = ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[wanted])
    async with running_broker(tmp_path) as broker:
        await create_topic(broker, "t")
        response = await ask(broker, ListOffsetsRequest(topics=[topic]), 3, connection=connection)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert connection.serves_rest == serves_rest


async def test_what_a_search_logs_carries_its_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    async def run(*_: Any) -> None:
        context = CURRENT.get()
        assert context is not None
        seen.append(context.api_key)

    monkeypatch.setattr(list_offsets, "_run", run)
    topic = ListOffsetsRequest.ListOffsetsTopic(
        name="t", partitions=[ListOffsetsRequest.ListOffsetsPartition(timestamp=NOW_MS)]
    )
    async with running_broker(tmp_path) as broker:
        await create_topic(broker, "t")
        await ask(broker, ListOffsetsRequest(topics=[topic]), 3)
    assert seen == [ApiKey.LIST_OFFSETS]
    assert CURRENT.get() is None


async def test_a_log_directory_that_fails_in_any_handler_goes_offline(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        broker.dispatcher = Dispatcher(
            broker, lambda _: FailingHandler("at once", LogDirError(str(tmp_path), "it broke"))
        )
        assert (await ask(broker, ListGroupsRequest(), 4)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert str(tmp_path) in broker.logs.dirs.offline
