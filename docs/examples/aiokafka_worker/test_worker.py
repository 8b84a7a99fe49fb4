"""The worker in the test's event loop: results, dead letters, and what a transaction that fails leaves behind."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from aiokafka.errors import GroupAuthorizationFailedError
from worker import DEAD, JOBS, RESULTS, run


@pytest.fixture(autouse=True)
def topics(kafka_broker):
    for name in (JOBS, RESULTS, DEAD):
        kafka_broker.create_topic(name)
    yield
    for name in (JOBS, RESULTS, DEAD):
        kafka_broker.delete_topic(name)


@pytest.fixture
def worker(kafka_broker, group_id):
    """A worker for as long as the block lasts."""

    @asynccontextmanager
    async def started():
        stop = asyncio.Event()
        working = asyncio.create_task(run(kafka_broker.bootstrap_servers, group_id, stop, group_id))
        yield working
        stop.set()
        await working

    return started


async def until_done(broker, group, jobs):
    """Until the group has committed as many jobs."""
    await asyncio.to_thread(broker.wait_for, lambda: broker.committed(group).get(JOBS) == {0: jobs})


def squares(broker):
    return [record.json()["square"] for record in broker.records(RESULTS)]


async def test_each_job_has_one_result(worker, kafka_broker, group_id):
    kafka_broker.produce(JOBS, [{"number": number} for number in range(20)])
    async with worker():
        await until_done(kafka_broker, group_id, 20)
    assert squares(kafka_broker) == [number**2 for number in range(20)]


async def test_a_job_that_cannot_be_read_does_not_stop_the_others(worker, kafka_broker, group_id):
    kafka_broker.produce(JOBS, ['{"number": 2}', "no JSON", '{"count": 1}', '{"number": 3}'])
    async with worker():
        await until_done(kafka_broker, group_id, 4)
    assert squares(kafka_broker) == [4, 9]
    assert [(dead.json()["error"], dead.json()["offset"]) for dead in kafka_broker.records(DEAD)] == [
        ("JSONDecodeError", 1),
        ("KeyError", 2),
    ]


async def test_a_worker_that_fails_has_done_nothing_and_the_next_one_does_it(
    worker, kafka_broker, kafka_faults, group_id
):
    kafka_broker.produce(JOBS, [{"number": 5}])
    with (
        kafka_faults.error("TxnOffsetCommit", "GROUP_AUTHORIZATION_FAILED"),
        pytest.raises(GroupAuthorizationFailedError),
    ):
        async with worker() as working:
            await asyncio.wait([working])
    assert squares(kafka_broker) == []
    async with worker():
        await until_done(kafka_broker, group_id, 1)
    assert squares(kafka_broker) == [25]
