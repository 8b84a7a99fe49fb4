"""Brokers that come and go in one process: stopped, killed, started again, added, removed."""

from __future__ import annotations

import errno
import gc
import logging
import os
from pathlib import Path

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.cluster.topic_admin import NewTopic
from kpybroker.broker.lifecycle.errors import EXIT_COORDINATION, EXIT_PORT, StartupError
from kpybroker.control.errors import ControlError
from kpybroker.control.hosted import BROKERS_MAX, Hosted
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.system.files import HAS_POSIX_FILES
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.support.brokers.hosted import controlled, plans, running, until
from tests.support.brokers.running_broker import ask
from tests.support.storage.batches import batch

TO_RETRY = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
MARKER = ".kafka_cleanshutdown"


def port_of(broker: Broker) -> int:
    return broker.bound[0].listener.address[1]


async def produce(broker: Broker, value: bytes, topic: str = "t") -> int:
    """Its offset. As a client does, this tries again if the broker does not lead the partition yet."""
    data = ProduceRequest.PartitionProduceData(index=0, records=batch(value))
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
    )
    with trio.fail_after(60):
        while (response := await response_to(broker, request)).error_code in TO_RETRY:  # noqa: ASYNC110 -- as clients do
            await trio.sleep(0.01)
    assert response.error_code == 0
    offset: int = response.base_offset
    return offset


async def with_topic(broker: Broker, replicas: int = 1) -> None:
    await broker.topics.create_topics([NewTopic("t", num_partitions=1, replication_factor=replicas)], 10_000)


async def response_to(broker: Broker, request: ProduceRequest) -> ProduceResponse.PartitionProduceResponse:
    response: ProduceResponse.PartitionProduceResponse
    ((response,),) = [topic.partition_responses for topic in (await ask(broker, request, 9)).responses]
    return response


def log_dir(tmp_path: Path, broker_id: int = 0) -> Path:
    return tmp_path / f"broker-{broker_id}"


# --- one broker


async def test_a_broker_that_is_stopped_starts_again_with_its_id_its_port_and_its_data(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        port = port_of(hosted.brokers[0])
        await with_topic(hosted.brokers[0])
        assert await produce(hosted.brokers[0], b"a") == 0
        await hosted.stop_broker(0)
        assert hosted.brokers == {}
        assert (log_dir(tmp_path) / MARKER).exists()
        again = await hosted.start_broker(0)
        assert (again.node_id, port_of(again)) == (0, port)
        assert await produce(again, b"b") == 1


async def test_a_kill_resets_connections_and_leaves_files_as_they_are(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        port = port_of(hosted.brokers[0])
        await with_topic(hosted.brokers[0])
        await produce(hosted.brokers[0], b"a")
        before = files_below(log_dir(tmp_path))
        async with await trio.open_tcp_stream("127.0.0.1", port) as client:
            await trio.testing.wait_all_tasks_blocked()  # it is accepted
            await hosted.kill_broker(0)
            with pytest.raises(trio.BrokenResourceError) as caught:
                await client.receive_some()
        assert isinstance(caught.value.__cause__, OSError)
        assert caught.value.__cause__.errno == errno.ECONNRESET
        assert files_below(log_dir(tmp_path)) == before
        assert not (log_dir(tmp_path) / MARKER).exists()
        again = await hosted.start_broker(0)  # its lock and its port are free
        assert await produce(again, b"b") == 1
        assert port_of(again) == port


def files_below(directory: Path) -> dict[str, bytes]:
    """But for the tree, which is another server in a real cluster."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and not path.name.startswith("coordination.sqlite")
    }


async def test_a_kill_leaves_no_descriptor_and_no_task_behind(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        await with_topic(hosted.brokers[0])
        await cycle(hosted)
        gc.collect()  # what tests before this one have left would end in between
        descriptors = len(os.listdir("/proc/self/fd"))
        tasks = trio.lowlevel.current_statistics().tasks_living
        for _ in range(3):
            await cycle(hosted)
        assert len(os.listdir("/proc/self/fd")) == descriptors
        assert trio.lowlevel.current_statistics().tasks_living == tasks


async def cycle(hosted: Hosted) -> None:
    await hosted.kill_broker(0)
    broker = await hosted.start_broker(0)
    await produce(broker, b"x")
    await trio.testing.wait_all_tasks_blocked()


async def test_the_controller_of_one_broker_is_there_again_after_a_kill(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        epoch = hosted.brokers[0].broker_epoch
        await hosted.kill_broker(0)
        again = await hosted.start_broker(0)
        assert again.controller.is_active
        assert again.broker_epoch > epoch


# --- several


async def test_the_others_lead_what_a_killed_broker_led_and_it_catches_up_later(tmp_path: Path) -> None:
    async with controlled(tmp_path, 3) as (hosted, _):
        await with_topic(hosted.brokers[1], 3)
        leader = await leader_of(hosted)
        assert await produce(hosted.brokers[leader], b"a") == 0
        await hosted.kill_broker(leader)
        assert await produce(hosted.brokers[await leader_of(hosted, other_than=leader)], b"b") == 1
        again = await hosted.start_broker(leader)
        await until(lambda: in_sync(again) == [0, 1, 2])
        log = again.logs.get("t", 0)
        assert log is not None
        assert log.log_end_offset == 2


def in_sync(broker: Broker) -> list[int]:
    state = broker.metadata.partition("t", 0)
    return [] if state is None else sorted(state.isr)


async def leader_of(hosted: Hosted, other_than: int = -1) -> int:
    """As a broker that is up knows it."""
    broker = next(iter(hosted.brokers.values()))

    def leader() -> int:
        state = broker.metadata.partition("t", 0)
        return -1 if state is None else state.leader

    assert await broker.metadata.wait_until(lambda _: leader() not in (-1, other_than), 20)
    return leader()


async def test_a_broker_that_stops_in_order_hands_over_its_leadership_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with controlled(tmp_path, 2) as (hosted, _):
        await with_topic(hosted.brokers[0], 2)
        leader = await leader_of(hosted)
        await hosted.stop_broker(leader)
        assert await leader_of(hosted) == 1 - leader
    assert "Controlled shutdown request returned successfully" in caplog.text
    assert caplog.text.count("Starting controlled shutdown") == 1  # not when all stop


async def test_a_broker_is_added_and_removed_and_its_id_may_be_taken_again(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        added = await hosted.add_broker(rack="r1")
        assert (added.node_id, added.config.get_str("broker.rack")) == (1, "r1")
        assert added.cluster_id == hosted.brokers[0].cluster_id
        assert await hosted.brokers[0].metadata.wait_until(lambda snapshot: len(snapshot.brokers) == 2, 10)
        await hosted.add_broker(7)
        assert hosted.ids == (0, 1, 7)
        await hosted.remove_broker(1)
        assert set(hosted.brokers) == {0, 7}
        with pytest.raises(ControlError, match="there is no broker 1"):
            await hosted.start_broker(1)
        assert (await hosted.add_broker(1)).node_id == 1


async def test_what_cannot_be_done_is_refused(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        for wrong, cause in (
            (lambda: hosted.start_broker(0), "broker 0 is up"),
            (lambda: hosted.stop_broker(4), "there is no broker 4"),
            (lambda: hosted.add_broker(0), "there is a broker 0"),
            (lambda: hosted.add_broker(-1), "-1 is no id of a broker"),
            (lambda: hosted.remove_broker(0), "it is the only broker"),
        ):
            with pytest.raises(ControlError, match=cause):
                await wrong()
        await hosted.kill_broker(0)
        with pytest.raises(ControlError, match="broker 0 is down"):
            await hosted.kill_broker(0)


async def test_there_is_a_greatest_number_of_brokers(tmp_path: Path) -> None:
    async with running(Hosted(plans(tmp_path), tmp_path)) as hosted:
        hosted._plans |= {number: hosted.plan(0) for number in range(1, BROKERS_MAX)}
        with pytest.raises(ControlError, match="there are 9 brokers"):
            await hosted.add_broker()


async def test_an_added_broker_that_does_not_start_is_not_there(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        (tmp_path / "broker-1").write_text("a file")
        with pytest.raises(StartupError):
            await hosted.add_broker()
        assert hosted.ids == (0,)
        assert await produce_to_new_topic(hosted) == 0


async def produce_to_new_topic(hosted: Hosted) -> int:
    await with_topic(hosted.brokers[0])
    return await produce(hosted.brokers[0], b"x")


# --- failures


async def test_a_start_that_fails_stops_those_that_have_started(tmp_path: Path) -> None:
    first, second = plans(tmp_path, 2)
    async with running(Hosted([first], tmp_path)) as other:
        taken = port_of(other.brokers[0])
        second.props["listeners"] = f"PLAINTEXT://127.0.0.1:{taken}"  # type: ignore[index]
        second.props["log.dirs"] = str(tmp_path / "second")  # type: ignore[index]
        third = plans(tmp_path / "third")[0]
        hosted = Hosted([third, second], tmp_path / "cluster")
        with pytest.RaisesGroup(pytest.RaisesExc(StartupError, match=f"port {taken} is taken"), flatten_subgroups=True):
            await hosted.run(trio.lowlevel.checkpoint)
        assert hosted.brokers == {}


async def test_without_a_channel_the_failure_of_one_is_the_end_of_all(tmp_path: Path) -> None:
    hosted = Hosted(plans(tmp_path, 2), tmp_path)
    with trio.fail_after(30):
        async with running(hosted):
            broker = hosted.brokers[1]
            broker.log_dir_failed(LogDirError(str(log_dir(tmp_path, 1)), OSError(errno.EIO, "broken")))
            await until(lambda: not hosted.brokers)
    assert hosted.fatal is not None
    assert "all log directories have failed" in hosted.fatal.cause
    assert hosted.fatal.fix == "repair or replace the disk, then start again"


async def test_with_a_channel_a_broker_that_fails_is_down_until_it_is_started(tmp_path: Path) -> None:
    async with controlled(tmp_path, 2) as (hosted, _):
        hosted.brokers[1].log_dir_failed(LogDirError(str(log_dir(tmp_path, 1)), OSError(errno.EIO, "broken")))
        await until(lambda: 1 not in hosted.brokers)
        assert 0 in hosted.brokers
        await hosted.start_broker(1)
        assert set(hosted.brokers) == {0, 1}


@pytest.mark.skipif(not HAS_POSIX_FILES, reason="an open file cannot be removed there")
async def test_a_file_of_the_tree_that_is_taken_away_from_idle_brokers_is_written_again(tmp_path: Path) -> None:
    hosted = Hosted(plans(tmp_path, 1), tmp_path)
    async with running(hosted):
        copy = hosted.tree_copy()
        assert copy is not None
        copy[0].unlink()
        with trio.fail_after(30):
            await until(copy[0].exists)
    assert hosted.fatal is None


@pytest.mark.skipif(not HAS_POSIX_FILES, reason="an open file cannot be replaced there")
async def test_another_file_in_the_place_of_the_tree_is_the_end_of_idle_brokers(tmp_path: Path) -> None:
    hosted = Hosted(plans(tmp_path, 1), tmp_path)
    async with running(hosted):
        copy = hosted.tree_copy()
        assert copy is not None
        copy[0].unlink()
        copy[0].write_bytes(b"of someone else")
        with trio.fail_after(30):
            await until(lambda: not hosted.brokers)
    assert hosted.fatal is not None
    assert (hosted.fatal.exit_code, copy[0].read_bytes()) == (EXIT_COORDINATION, b"of someone else")


def test_a_port_error_has_its_exit_code() -> None:
    assert StartupError("c", "f", EXIT_PORT).exit_code == 5


# --- for methods


async def test_undoing_is_in_the_reverse_order(tmp_path: Path) -> None:
    hosted, undone = Hosted(plans(tmp_path), tmp_path), list[int]()
    for number in range(3):

        async def undo(number: int = number) -> None:
            undone.append(number)

        hosted.on_reset(undo)
    await hosted.reset()
    await hosted.reset()
    assert undone == [2, 1, 0, 2, 1, 0]


def test_there_is_one_part_of_a_class(tmp_path: Path) -> None:
    class Part:
        pass

    hosted = Hosted(plans(tmp_path), tmp_path)
    assert hosted.part(Part) is hosted.part(Part)


async def test_brokers_whose_task_is_cancelled_end_at_once(tmp_path: Path) -> None:
    """As by a signal while they start: they follow each other, and none is left that could take over."""
    with trio.fail_after(60), trio.CancelScope() as scope:
        async with running(Hosted(plans(tmp_path, 3), tmp_path)) as hosted:
            await with_topic(hosted.brokers[0], 3)
            await until(lambda: any(len(broker.replicas.fetchers) for broker in hosted.brokers.values()))
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert hosted.brokers == {}


# --- the tree, for clients of ZooKeeper


async def said_by(address: tuple[str, int] | None, word: bytes) -> bytes:
    assert address is not None
    stream = await trio.open_tcp_stream(*address)
    await stream.send_all(word)
    response = b""
    while more := await stream.receive_some():
        response += more
    return response


async def test_the_tree_is_served_at_one_port_whatever_happens_to_the_brokers(tmp_path: Path) -> None:
    async with controlled(tmp_path, count=2, kpybroker_zookeeper_port="0") as (hosted, _):
        address = hosted.tree_address
        assert await said_by(address, b"ruok") == b"imok"
        await hosted.kill_broker(0)
        assert b"Mode: standalone" in await said_by(address, b"srvr")
        await hosted.replace_files(lambda: None)
        assert hosted.tree_address == address
        assert await said_by(address, b"ruok") == b"imok"


async def test_without_a_port_the_tree_is_not_served(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        assert hosted.tree_address is None


async def test_a_port_of_the_tree_that_is_taken_ends_the_start_with_its_cause(tmp_path: Path) -> None:
    async with controlled(tmp_path / "a", kpybroker_zookeeper_port="0") as (hosted, _):
        assert hosted.tree_address is not None
        port = str(hosted.tree_address[1])
        with pytest.raises(ExceptionGroup) as raised:
            async with running(Hosted(plans(tmp_path / "b", kpybroker_zookeeper_port=port), tmp_path / "b")):
                raise AssertionError("it has started")
        error = next(iter(leaves(raised.value)))
        assert isinstance(error, StartupError)
        assert error.exit_code == EXIT_PORT
        assert error.cause == f"the tree cannot be served at 127.0.0.1:{port}: {os.strerror(errno.EADDRINUSE)}"
        assert "kpybroker.zookeeper.port" in error.fix


def leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves(inner)]
    return [error]


@pytest.mark.skipif(os.name == "nt", reason="owners and modes of POSIX")
async def test_a_directory_that_another_user_may_have_made_gets_no_data(tmp_path: Path) -> None:
    """With one broker, the directory of those that are added has a name that was made up here."""
    place = tmp_path / "more"
    place.mkdir()
    place.chmod(0o777)
    async with running(Hosted(plans(tmp_path / "data"), place)) as hosted:
        with pytest.raises(ControlError, match="more cannot be used: other users may write to it"):
            await hosted.add_broker()
        assert list(place.iterdir()) == []
        place.chmod(0o755)
        await hosted.add_broker()
        assert len(hosted.brokers) == 2
