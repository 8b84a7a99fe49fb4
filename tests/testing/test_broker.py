"""`Broker` and `Cluster`: their life, in a child process and in a thread, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from pathlib import Path

import pytest
import trio

from kpybroker.testing import Broker, BrokerGone, Cluster, StartError, UsageError, WaitTimeout
from tests.support.programs.leftovers import (
    Trace,
    assert_no_more_than,
    broker_pid,
    broker_threads,
    descriptors,
    eventually,
    in_own_process,
)

in_both = pytest.mark.parametrize("in_thread", [False, True], ids=["process", "thread"])


# --- start and stop


@in_both
def test_it_serves_in_its_block_and_leaves_nothing_behind(in_thread: bool) -> None:
    in_own_process(_serves_and_leaves_nothing, in_thread)


def _serves_and_leaves_nothing(in_thread: bool) -> None:
    with Broker(in_thread=in_thread):
        pass  # what is opened once, such as trio's worker threads
    before = set(descriptors().items())
    with Broker(topics=["t"], in_thread=in_thread) as broker:
        assert broker.is_running
        assert (broker_pid(broker) == os.getpid()) is in_thread
        assert broker.bootstrap_servers == broker.bootstrap_server == f"{broker.host}:{broker.port}"
        broker.produce("t", ["a"])
        assert [record.text for record in broker.records("t")] == ["a"]
        trace = Trace(broker)
    assert not broker.is_running
    trace.assert_gone()
    assert broker_threads() == []
    assert_no_more_than(before)


@in_both
def test_it_starts_again_with_nothing_of_its_life_before(in_thread: bool) -> None:
    broker = Broker(topics=["t"], in_thread=in_thread)
    for _ in range(2):
        with broker:
            assert broker.records("t") == []
            broker.produce("t", ["a"])


@in_both
def test_what_was_asked_for_is_there(in_thread: bool) -> None:
    keys = {"log.retention.ms": 1234, "log.cleaner.enable": False}
    with Broker(
        topics={"one": 1, "six": 6}, partitions=3, auto_create=False, config=keys, in_thread=in_thread
    ) as broker:
        broker.create_topic("own", config={"retention.ms": 99})
        topics = broker.topics()
        assert {name: len(topic.partitions) for name, topic in topics.items()} == {"one": 1, "own": 1, "six": 6}
        assert topics["own"].config == {"retention.ms": "99"}


@in_both
def test_data_are_kept_where_they_are_asked_to_be(tmp_path: Path, in_thread: bool) -> None:
    for values in ([], ["a"]):
        with Broker(data_dir=tmp_path / "data", in_thread=in_thread) as broker:
            assert broker.data_dir == str(tmp_path / "data")
            if not values:
                broker.create_topic("t")
                broker.produce("t", ["a"])
            else:
                assert [record.text for record in broker.records("t")] == values
    with Broker(data_dir=tmp_path / "data", in_thread=not in_thread) as broker:
        assert [record.text for record in broker.records("t")] == ["a"]


def test_a_new_directory_is_kept_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Broker(keep=True) as broker:
        pass
    assert Path(broker.data_dir).parent == tmp_path
    assert (Path(broker.data_dir) / "meta.properties").exists()


@in_both
def test_a_cluster_is_brokers_of_one_process(in_thread: bool) -> None:
    with Cluster(3, topics={"t": 3}, in_thread=in_thread) as cluster:
        assert cluster.ids == [0, 1, 2]
        assert len(cluster) == 3
        assert len(cluster.bootstrap_servers.split(",")) == 3
        assert cluster.controller is not None
        assert cluster.controller.id == 0
        for partition in cluster.topics()["t"].partitions:
            assert sorted(partition.replicas) == [0, 1, 2]
        trace = Trace(cluster)
        cluster[1].kill()
        assert not cluster[1].is_up
        with pytest.raises(UsageError, match="broker 1 is down"):
            cluster[1].bootstrap_server  # noqa: B018
        cluster[1].start()
        assert [node.is_up for node in cluster] == [True, True, True]
        with pytest.raises(UsageError, match="there is no broker 3"):
            cluster[3]
        node = cluster.add_broker(rack="r")
        assert (node.id, node.status()["rack"]) == (3, "r")
        cluster.remove_broker(3)
        assert cluster.ids == [0, 1, 2]
    trace.assert_gone()


def test_it_can_be_killed(tmp_path: Path) -> None:
    with Broker() as broker:
        trace = Trace(broker)
        broker.kill()
        trace.assert_gone()
        assert not broker.is_running


# --- wrong use


def test_a_key_that_does_not_exist_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"'num.partition' is no key .*\nfix: did you mean 'num.partitions'"):
        Broker(config={"num.partition": 3})


@in_both
def test_a_value_that_is_refused_says_so(in_thread: bool) -> None:
    broker = Broker(config={"num.partitions": 0}, in_thread=in_thread)
    with pytest.raises(StartError, match=r"num\.partitions"):
        broker.start()
    assert not broker.is_running
    assert not Path(broker.data_dir).exists()


@in_both
def test_a_port_that_is_taken_is_named(in_thread: bool) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=rf"port {port} is taken.*\nfix: "):
            Broker(port=port, in_thread=in_thread).start()


@in_both
def test_a_directory_that_is_in_use_is_named(tmp_path: Path, in_thread: bool) -> None:
    with Broker(data_dir=tmp_path), pytest.raises(StartError, match="in use by another broker"):
        Broker(data_dir=tmp_path, in_thread=in_thread).start()


def test_a_second_start_is_refused_and_changes_nothing() -> None:
    with Broker() as broker:
        with pytest.raises(UsageError, match="is started already"):
            broker.start()
        assert broker.topics() == {}


def test_outside_of_its_block_it_says_so() -> None:
    broker = Broker()
    for use in (lambda: broker.bootstrap_servers, broker.topics, lambda: broker.clock.now_ms(), lambda: broker.port):
        with pytest.raises(BrokerGone, match="not running"):
            use()
    with broker:
        clock = broker.clock
    with pytest.raises(BrokerGone, match="has been stopped"):
        clock.now_ms()
    broker.stop()  # again: does nothing


def test_more_brokers_than_there_can_be_are_refused() -> None:
    for count in (0, 10):
        with pytest.raises(UsageError, match=rf"Cluster\(brokers={count}\)\nfix: give an integer from 1 to 9"):
            Cluster(count)


@in_both
def test_a_start_that_takes_too_long_is_ended(in_thread: bool) -> None:
    broker = Broker(in_thread=in_thread, start_timeout=0.001)
    with pytest.raises(StartError, match=r"not ready within 0.001 s"):
        broker.start()
    eventually(lambda: not Path(broker.data_dir).exists(), "files are left")
    assert broker_threads() == []


def test_a_broker_whose_process_ends_says_how_and_the_block_ends_as_it_would() -> None:
    with Broker() as broker:
        trace = Trace(broker)
        os.kill(broker_pid(broker), signal.SIGKILL)
        with pytest.raises(BrokerGone, match=r"ended with exit code -9"):
            broker.topics()
    trace.assert_gone()


# --- its log


@in_both
def test_its_log_can_be_read_also_afterwards(in_thread: bool) -> None:
    with Cluster(2, in_thread=in_thread) as cluster:
        cluster[1].kill()
        assert "killed" in "\n".join(cluster.log())
    assert "killed" in "\n".join(cluster.log())


def test_in_a_thread_the_log_of_the_program_is_left_alone(capfd: pytest.CaptureFixture[str]) -> None:
    import logging

    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with Broker(in_thread=True) as broker:
        assert root.handlers == handlers
        logging.getLogger("mine").error("of the program")
        assert "of the program" not in "\n".join(broker.log())
    assert (root.handlers, root.level) == (handlers, level)


def test_a_level_that_a_client_sets_ends_with_a_broker_in_a_thread() -> None:
    import logging

    from kpybroker.broker.cluster import loggers
    from kpybroker.config.dynamic import AlterConfigOp, OpType

    level = logging.getLogger().level
    with Broker(in_thread=True):
        loggers.apply([AlterConfigOp("root", OpType.SET, "FATAL")])
        assert logging.getLogger().level == logging.CRITICAL
    assert logging.getLogger().level == level


# --- many, and from everywhere


def test_many_start_at_once() -> None:
    in_own_process(_many_start_at_once)


def _many_start_at_once() -> None:
    before = set(descriptors().items())
    brokers = [Broker(topics=["t"]) for _ in range(10)]
    threads = [threading.Thread(target=broker.start) for broker in brokers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trace = Trace(*brokers)
    assert len(set(trace.ports)) == 20
    for number, broker in enumerate(brokers):
        if number % 2:
            broker.stop()
        else:
            broker.kill()
    trace.assert_gone()
    assert_no_more_than(before)


def test_calls_come_from_any_number_of_threads() -> None:
    with Broker(topics=["t"]) as broker:
        threads = [threading.Thread(target=lambda: [broker.produce("t", ["a"]) for _ in range(10)]) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert broker.end_offsets("t") == {0: 100}


async def in_a_loop() -> None:
    async with Broker(topics=["t"]) as broker:
        trace = Trace(broker)
        broker.produce("t", ["a"])
        assert await broker.aio.wait_for(lambda: broker.records("t"))
        with pytest.raises(WaitTimeout):
            await broker.aio.wait_group("g", timeout=0.01)
        with pytest.raises(WaitTimeout):
            await broker.aio.wait_assigned("g", timeout=0.01)
        assert await broker.aio.call(broker.end_offsets, "t") == {0: 1}
        await broker.aio.stop()
        await broker.aio.start()
        assert broker.records("t") == []
    trace.assert_gone()


def test_in_asyncio() -> None:
    asyncio.run(in_a_loop())


def test_in_trio() -> None:
    trio.run(in_a_loop)


def test_a_thread_with_a_broker_and_a_trio_program_are_two_loops() -> None:
    async def program() -> None:
        async with Broker(in_thread=True, topics=["t"]) as broker:
            broker.produce("t", ["a"])
            assert len(broker.records("t")) == 1

    trio.run(program)


# --- waiting for groups


def test_a_group_that_is_not_there_says_so() -> None:
    with Broker() as broker:
        with pytest.raises(WaitTimeout, match=r"group g \(Stable, 2 members\) did not .*seen instead: no such group"):
            broker.wait_group("g", members=2, timeout=0.01)
        with pytest.raises(WaitTimeout, match="the assignment of t in group g"):
            broker.wait_assigned("g", "t", timeout=0.01)
