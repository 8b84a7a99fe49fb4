"""When a command gives up before librdkafka does."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from kpybroker.client.connect import admin
from kpybroker.client.connect.admin import Cluster, ErrorWatch, make
from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import Connection, load
from tests.support.network.ports import free_port


def test_a_refused_login_ends_it_at_once() -> None:
    watch = ErrorWatch()
    watch(KafkaError(KafkaError._AUTHENTICATION, "bad password"))
    with pytest.raises(CommandError, match="bad password"):
        watch.check()


def test_brokers_that_are_down_end_it_after_a_while_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = ErrorWatch()
    watch(KafkaError(KafkaError._TRANSPORT, "h:1/bootstrap: Connection refused (after 0ms in state CONNECT)"))
    watch(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    watch.check()
    monkeypatch.setattr(admin, "GRACE_S", -1.0)
    with pytest.raises(CommandError, match=r"no broker can be reached: h:1/bootstrap: Connection refused$"):
        watch.check()
    watch.connected()
    watch.check()


def test_a_client_that_was_idle_has_as_long_as_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker closed its idle connection, and librdkafka makes a new one."""
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    watch = ErrorWatch()
    watch.connected()
    now += 3600.0
    watch(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    watch.check()
    now += admin.GRACE_S + 0.1
    watch(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    with pytest.raises(CommandError, match="no broker can be reached: all brokers are down"):
        watch.check()


def test_a_cluster_that_is_not_there_is_no_long_wait() -> None:
    settings = load(Connection(f"127.0.0.1:{free_port()}", timeout_s=60))
    with pytest.raises(CommandError, match="Connection refused"):
        Cluster(settings).metadata()


def test_a_key_that_librdkafka_refuses_is_named() -> None:
    for option, named in (("nope=1", "nope is a key of neither"), ("acks=x", "request.required.acks")):
        with pytest.raises(CommandError, match=named) as caught:
            make(AdminClient, load(Connection(options=(option,))), ErrorWatch())
        assert caught.value.exit_code == 2
