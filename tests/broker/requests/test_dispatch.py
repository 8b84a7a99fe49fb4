"""What is advertised is served; what cannot be understood ends the connection; what fails gets its API's answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.handlers import routes
from kpybroker.broker.requests.dispatch import Route
from kpybroker.broker.requests.served import SERVED
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode
from kpybroker.wire.errors import ErrorCode, ProtocolError
from kpybroker.wire.headers import RequestHeader, encode_request_header
from kpybroker.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kpybroker.wire.messages.list_groups import ListGroupsRequest
from kpybroker.wire.messages.produce import ProduceRequest
from tests.support.running_broker import CLIENT, ask, running_broker


@pytest.mark.parametrize("key", SERVED, ids=lambda key: key.name)
def test_the_table_says_what_the_ledger_says(key: ApiKey) -> None:
    ledger = routes.load(key).LEDGER
    assert ledger.api_key is key
    assert (ledger.min_version, ledger.max_version) == SERVED[key]
    oldest, newest = API_INFO[key].valid_versions
    assert oldest <= ledger.min_version <= ledger.max_version <= newest


@pytest.mark.parametrize("key", SERVED, ids=lambda key: key.name)
def test_every_version_has_an_error_answer_that_can_be_encoded(key: ApiKey) -> None:
    from kpybroker.broker.requests.context import RequestContext
    from kpybroker.core.authorizer import AllowAll
    from kpybroker.wire.codec import encode
    from kpybroker.wire.errors import KafkaError

    oldest, newest = SERVED[key]
    for version in range(oldest, newest + 1):
        route = Route(key, version, routes.load(key))
        context = RequestContext(CLIENT, AllowAll(), key, version)
        error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        request = route.request_class()
        if isinstance(request, ProduceRequest):
            request.acks = 1
        encode(route.error_response(request, context, error), version)


async def test_the_response_to_a_later_version_lists_the_versions_to_use(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        header = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 99, 5, "future"))
        frame = await broker.dispatcher.answer(bytearray(header + b"\xff\xfe\xfd"), CLIENT)
        assert isinstance(frame, bytes)
        answer = frame[4:]
        assert answer[:4] == (5).to_bytes(4, "big")
        response = decode(ApiVersionsResponse, answer[4:], 0)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [(api.api_key, api.min_version, api.max_version) for api in response.api_keys] == [(18, 0, 4)]


@pytest.mark.parametrize("version", range(5))
async def test_api_versions_names_all_that_is_served(tmp_path: Path, version: int) -> None:
    async with running_broker(tmp_path) as broker:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
        response = await ask(broker, request, version)
        assert {api.api_key: (api.min_version, api.max_version) for api in response.api_keys} == SERVED


async def test_a_client_that_gives_itself_no_proper_name_is_refused(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        request = ApiVersionsRequest(client_software_name="-", client_software_version="1")
        assert (await ask(broker, request, 3)).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("key", "version"), [(ApiKey.PRODUCE, 12), (ApiKey.METADATA, 99), (1234, 0), (-1, 0)])
async def test_what_is_not_served_ends_the_connection(tmp_path: Path, key: int, version: int) -> None:
    async with running_broker(tmp_path) as broker:
        header = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff" + bytes(20)
        with pytest.raises(ProtocolError):
            await broker.dispatcher.answer(bytearray(header), CLIENT)


async def test_a_handlers_mistake_becomes_its_apis_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_broker(tmp_path) as broker:
        monkeypatch.setattr(broker.groups, "list_groups", lambda *_: 1 / 0)
        assert (await ask(broker, ListGroupsRequest(), 4)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
