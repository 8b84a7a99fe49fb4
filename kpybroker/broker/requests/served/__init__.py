"""Which versions of which APIs are served: ours (`apis.SERVED`), and those of Kafka's releases (`kafka_releases`).

Never here: what a version means. That is in the ledgers of `broker.handlers`, against which a test holds `SERVED`.
"""
