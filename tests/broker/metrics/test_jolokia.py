"""`/jolokia` of a running broker, over a real socket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import h11
import trio

from kpybroker.broker.app import Broker
from tests.broker.metrics.test_server import PORT, get
from tests.broker.replication.test_traffic import produce
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.storage.batches import batch

MESSAGES_IN = "kafka.server:name=MessagesInPerSec,topic=t,type=BrokerTopicMetrics"
SIZE = "kafka.log:type=Log,name=Size,topic=t,partition=0"
RATES = {"MeanRate", "OneMinuteRate", "FiveMinuteRate", "FifteenMinuteRate"}


async def asked(broker: Broker, target: str) -> Any:
    status, headers, body = await get(broker, f"/jolokia{quote(target, safe='/?=*!,:')}")
    assert (status, headers["content-type"]) == (200, "application/json")
    return json.loads(body)


async def posted(broker: Broker, found: Any) -> Any:
    assert broker.metrics is not None
    assert broker.metrics.address is not None
    body = json.dumps(found).encode()
    http = h11.Connection(h11.CLIENT)
    async with await trio.open_tcp_stream(*broker.metrics.address) as stream:
        headers = [("Host", "localhost"), ("Connection", "close"), ("Content-Length", str(len(body)))]
        sent = http.send(h11.Request(method="POST", target="/jolokia/", headers=headers)) or b""
        await stream.send_all(sent + (http.send(h11.Data(data=body)) or b""))
        response = b""
        while not isinstance(event := http.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                http.receive_data(await stream.receive_some(65536))
            elif isinstance(event, h11.Data):
                response += event.data
    return json.loads(response)


async def test_mbeans_are_read(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"], kpybroker_metrics_port=PORT) as broker:
        await ask(broker, produce("t", batch(b"one", b"two")), 9)
        assert broker.metrics is not None

        found = await asked(broker, f"/read/{MESSAGES_IN}/Count")
        assert (found["value"], found["status"]) == (2, 200)
        assert found["request"] == {"type": "read", "mbean": MESSAGES_IN, "attribute": "Count"}
        assert abs(found["timestamp"] - broker.clock.time_ms() / 1000) < 600
        assert (await asked(broker, f"/read/{MESSAGES_IN}"))["value"] == {"Count": 2} | dict.fromkeys(RATES, 0.0)

        await broker.metrics.ticker.tick()
        rates = (await asked(broker, f"/read/{MESSAGES_IN}"))["value"]
        assert rates.keys() == {"Count", *RATES}
        assert rates["OneMinuteRate"] == 2 / 5
        shrinks = await asked(broker, "/read/kafka.server:type=ReplicaManager,name=IsrShrinksPerSec")
        assert shrinks["value"].keys() == {"Count", *RATES}

        every = await asked(broker, "/read/kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec,*/Count")
        assert every["value"] == {
            "kafka.server:name=MessagesInPerSec,type=BrokerTopicMetrics": {"Count": 2},
            MESSAGES_IN: {"Count": 2},
        }
        size = await asked(broker, "/read/kafka.network:type=RequestMetrics,name=RequestBytes,request=Produce")
        assert {"Count", "Min", "Max", "Mean", "50thPercentile", "999thPercentile"} <= size["value"].keys()
        count = await asked(broker, "/read/kafka.server:type=ReplicaManager,name=PartitionCount/Value")
        assert count["value"] == 1

        found = await asked(broker, "/search/kafka.log:type=Log,*?canonicalNaming=false")
        assert SIZE in found["value"]
        listed = await asked(broker, "/list/kafka.log/name=Size,partition=0,topic=t,type=Log/attr")
        described = {"rw": False, "type": "java.lang.Object", "desc": "Attribute exposed for management"}
        assert listed["value"] == {"Value": described}
        assert (await asked(broker, f"/list/{SIZE.replace(':', '/')}/attr"))["value"] == {"Value": described}
        assert (await asked(broker, "/list/kafka.nothing"))["value"] == {}
        assert "kafka.controller" in (await asked(broker, "/list"))["value"]
        assert (await asked(broker, "/version"))["value"]["protocol"] == "7.2"


async def test_errors_are_in_the_body(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"], kpybroker_metrics_port=PORT) as broker:
        for target, error_type, status in (
            ("/read/kafka.server:type=Nothing", "javax.management.InstanceNotFoundException", 404),
            ("/read/kafka.nothing:*", "javax.management.InstanceNotFoundException", 404),
            (
                f"/read/{SIZE}/X",
                "javax.management.AttributeNotFoundException",
                404,
            ),
            ("/read/kafka.log:type=Log,*/X", "java.lang.IllegalArgumentException", 400),
            ("/read/kafka/X", "java.lang.IllegalArgumentException", 400),
            ("/list/kafka.log/type=Nothing", "java.lang.IllegalArgumentException", 400),
            ("/write/kafka.log:type=Log/X/1", "java.lang.SecurityException", 403),
        ):
            found = await asked(broker, target)
            assert (found["error_type"], found["status"]) == (error_type, status), target
            assert found["error"].startswith(f"{error_type} : ")
            assert "value" not in found
        assert (await get(broker, "/jolokiax"))[0] == 404
        assert (await get(broker, "/jolokia", "DELETE"))[0] == 405
        assert (await get(broker, "/jolokia", "HEAD"))[0] == 200


async def test_an_array_has_a_response_for_each_request(tmp_path: Path) -> None:
    one = {"type": "read", "mbean": "kafka.server:type=ReplicaManager,name=PartitionCount", "attribute": ["Value"]}
    async with running_broker(tmp_path, topics=["t"], kpybroker_metrics_port=PORT) as broker:
        assert (await posted(broker, one))["value"] == {"Value": 1}
        found = await posted(broker, [one, {"type": "exec"}, {"type": "version"}])
        assert [each["status"] for each in found] == [200, 403, 200]
        assert (await posted(broker, [])) == []
