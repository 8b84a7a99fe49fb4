"""Which versions of which APIs are served: ours (`apis.SERVED`), those of Kafka's releases (`kafka_releases`), and what
a broker serves at most when it takes the place of one of these (`version_cap`).

Never here: what a version means. That is in the ledgers of `broker.handlers`, against which a test holds `SERVED`.
"""
