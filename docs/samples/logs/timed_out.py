"""A produce that times out, and what the logs of the three brokers say about it."""

import json
import re

from kpybroker.testing import Cluster

LEVELS = "kafka.request.logger=DEBUG,kafka.server.ReplicaManager=INFO,kafka.server.ReplicaFetcherThread=DEBUG"
CONFIG = {"kpybroker.log.levels": LEVELS, "replica.socket.timeout.ms": 5000}


def find(pattern, **values):
    """The last line with a match."""
    text = pattern.format(**values)
    return next((line for line in reversed(cluster.log(2000)) if re.search(text, line)), None)


with Cluster(brokers=3, topics=["orders"], config=CONFIG) as cluster:
    cluster.move_leader("orders", to=0)
    settings = {"client.id": "shop", "acks": "all", "request.timeout.ms": 2000, "retries": 0}
    producer = cluster.producer(**settings)
    producer.produce("orders", "in time")
    producer.flush(60)

    cluster.partition([0, 1], [2], coordination=[0, 1, 2])  # broker 2 hears no more of its leader
    failures = []
    producer.produce("orders", "too late", on_delivery=lambda error, _: failures.append(error.name()))
    producer.flush(60)
    print("client:", failures)
    lost = r"replicaId=2, leaderId=0.*Error in response for fetch request"
    cluster.wait_for(lambda: find(lost), timeout=60, what="broker 2 gives up its fetch")

    print("\n# the leader: which request, and which follower is behind")
    late = find("Produce timed out")
    print(late)
    request = re.search(r"correlation_id=(\d+)", late)[1]

    print("\n# the request log of the leader: the same request, by its client id and correlation id")
    line = find(r'Completed request.*"requestApiKey":0.*"correlationId":{id},"clientId":"shop"', id=request)
    found = json.loads(line.partition("Completed request:")[2].rpartition(" (")[0])
    print({name: found[name] for name in ("totalTimeMs", "localTimeMs", "remoteTimeMs")})

    print("\n# broker 1 has it: the fetch that brought it")
    print(find(r"replicaId=1, leaderId=0.*replica log end offset 2 "))

    print("\n# broker 2 waits in vain: its fetch")
    print(find(lost))
    fetch = re.search(r"correlation_id=(\d+)", find(lost))[1]

    print("\n# the request log of the leader: it did respond to that fetch, so the network has lost the response")
    line = find(r'Completed request.*"correlationId":{id},"clientId":"broker-2-fetcher-0"', id=fetch)
    found = json.loads(line.partition("Completed request:")[2].rpartition(" (")[0])
    print({name: found[name] for name in ("connection", "responseSizeBytes", "sendTimeMs")})
