"""The example of each method of the control channel: all are sent, in the order of the file, to a cluster of three."""

from __future__ import annotations

import http.client
import json

from kpybroker.control.catalogue import GROUPS
from kpybroker.testing import Cluster
from tests.support.programs.samples import SAMPLES

LINES = (SAMPLES / "testing" / "control-methods.txt").read_text(encoding="utf-8").splitlines()
REFUSED = {"answer_predicate": 409, "wait_fault": 408, "wait_client_metrics": 408}
"""No request waits for a decision, none has failed, and no client has pushed."""
WAIT_S = 120


def call(control: str, line: str) -> tuple[int, object]:
    method, _, arguments = line.partition(" ")
    connection = http.client.HTTPConnection(control.removeprefix("http://"), timeout=WAIT_S)
    connection.request("POST", f"/v1/{method}", arguments, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def test_every_method_has_an_example() -> None:
    assert {line.partition(" ")[0] for line in LINES} == {name for group in GROUPS for name in group.names}


def test_every_example_is_a_request_that_works() -> None:
    with Cluster(3, topics=["orders"]) as cluster:
        producer = cluster.producer(library="confluent-kafka", transactional_id="copier", client_id="shop")
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("orders", b"first")
        producer.commit_transaction()
        consumer = cluster.consumer("billing", "orders", library="confluent-kafka")
        assert consumer.consume(1, WAIT_S)
        consumer.commit(asynchronous=False)
        consumer.close()
        for line in LINES:
            status, result = call(cluster.control, line)
            assert status == REFUSED.get(line.partition(" ")[0], 200), f"{line}: {result}"
