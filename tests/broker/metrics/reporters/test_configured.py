"""Which reporters a configuration makes, and what ends the start: two lines, and no value of a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.lifecycle.errors import EXIT_CONFIG, StartupError
from kpybroker.broker.metrics.reporters import configured
from kpybroker.broker.metrics.reporters.configured import otlp_headers, otlp_url
from kpybroker.config.broker import BrokerConfig
from tests.support.brokers.running_broker import running_broker


async def refused_at_start(directory: Path, endpoint: str) -> StartupError:
    """Why a broker with this endpoint does not start."""
    with pytest.raises((StartupError, ExceptionGroup)) as caught:
        async with running_broker(directory, kpybroker_otlp_endpoint=endpoint):
            raise AssertionError("it started")
    error: BaseException = caught.value
    while isinstance(error, ExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, StartupError)
    assert error.exit_code == EXIT_CONFIG
    assert "\n" not in error.cause + error.fix
    return error


async def test_without_the_extra_the_start_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configured, "OTLP_PACKAGES", ("httpx", "opentelemetry.nothing", "nothing.at.all"))
    error = await refused_at_start(tmp_path, "http://localhost:4318")
    assert error.cause == (
        "kpybroker.otlp.endpoint needs packages that are not installed: opentelemetry.nothing, nothing.at.all"
    )
    assert error.fix == "pip install 'kpybroker[otlp]', or leave kpybroker.otlp.endpoint out"


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/metrics"),
        ("https://collector.example/", "https://collector.example/v1/metrics"),
        ("http://[::1]:4318/v1/metrics", "http://[::1]:4318/v1/metrics"),
        ("https://vendor.example/otlp/", "https://vendor.example/otlp/v1/metrics"),
    ],
)
def test_the_path_of_metrics_is_appended(endpoint: str, url: str) -> None:
    assert otlp_url(endpoint) == url


@pytest.mark.parametrize(
    "endpoint",
    [
        "localhost:4318",
        "grpc://h:4317",
        "http://",
        "http://h:x",
        "http://h:99999",
        "http://[::1",
        "http://h/?a=b",
        "x\ny",
    ],
)
async def test_an_endpoint_that_is_no_address_ends_the_start(tmp_path: Path, endpoint: str) -> None:
    error = await refused_at_start(tmp_path, endpoint)
    assert error.cause == "kpybroker.otlp.endpoint is not the address of a server"


def test_a_password_in_the_endpoint_is_refused_and_not_shown() -> None:
    with pytest.raises(StartupError) as caught:
        otlp_url("http://user:s3cret@localhost:4318")
    assert caught.value.cause == "kpybroker.otlp.endpoint has a user or a password"
    assert "s3cret" not in caught.value.cause + caught.value.fix


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("", {}),
        ("Authorization=Bearer%20abc", {"Authorization": "Bearer abc"}),
        (" a = b , c=d=e,", {"a": "b", "c": "d=e"}),
        ("empty=", {"empty": ""}),
    ],
)
def test_headers_are_written_as_in_opentelemetrys_environment(text: str, headers: dict[str, str]) -> None:
    assert otlp_headers(BrokerConfig({"kpybroker.otlp.headers": text})) == headers


@pytest.mark.parametrize("bad", ["s3cret", "=s3cret", "a b=s3cret", "x=s3cret%0d%0aHost:%20y", "x=s3cret%C3%A9"])
def test_a_header_that_cannot_be_read_is_named_by_its_place_and_not_shown(bad: str) -> None:
    with pytest.raises(StartupError) as caught:
        otlp_headers(BrokerConfig({"kpybroker.otlp.headers": f"a=1,{bad}"}))
    assert caught.value.cause == "kpybroker.otlp.headers: header 2 of 2 is not NAME=VALUE"
    assert "s3cret" not in caught.value.fix


async def test_graphite_needs_its_class_and_its_switch(tmp_path: Path) -> None:
    async with running_broker(tmp_path, kafka_graphite_metrics_reporter_enabled="true") as broker:
        assert broker.metrics is None
