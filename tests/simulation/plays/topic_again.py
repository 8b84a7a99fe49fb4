"""A topic is deleted, and another one made under its name: who reads the first one gets nothing of the second."""

from __future__ import annotations

from compat_tests.faults.history import History
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.fetch import FetchRequest
from tests.simulation.checks.observer import is_in_sync
from tests.simulation.clients.administrator import Administrator
from tests.simulation.clients.client import only_partition
from tests.simulation.clients.producer import Producer
from tests.simulation.plays.parts import PLACE
from tests.simulation.seams.agenda import until
from tests.simulation.world import World

BY_ID = 13
"""The version of Fetch that names topics by their ids."""


async def make_topic_again(world: World) -> None:
    """In a fetch session, which has the first one's id."""
    await world.start()
    client, producer = Administrator(world, "administrator"), Producer(world, History(), "producer1", [PLACE])
    await client.create_topic(PLACE[0], 1, 1)
    await producer.init()
    await client.refresh(PLACE[0])
    wanted = FetchRequest.FetchPartition(partition=PLACE[1], fetch_offset=0, partition_max_bytes=20_000)
    topic = FetchRequest.FetchTopic(topic_id=client.topic_ids[PLACE[0]], partitions=[wanted])
    first = FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=0, topics=[topic])
    session_id = (await client.ask(1, first, BY_ID)).session_id
    assert session_id
    await client.delete_topic(PLACE[0])
    await client.create_topic(PLACE[0], 1, 1)
    await until(lambda: is_in_sync(world))
    await producer.produce(PLACE)
    again = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=1)
    response = await client.ask(1, again, BY_ID)
    error = ErrorCode(response.error_code or only_partition(response, "responses", "partitions").error_code)
    if error is ErrorCode.NONE:
        world.problem("topic of another id: its records are in the session of the one that was deleted")
    for each in (client, producer):
        each.close()
    await world.stop()
