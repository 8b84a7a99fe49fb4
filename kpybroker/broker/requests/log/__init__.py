"""Kafka's request log: what each request was, what its response was, and how long it took.

`request_logger.RequestLogger` is put around what serves requests while its logger is on; no broker imports it before.
Never here: the log of requests that tests read, which is the test kit's (`control.requests`).
"""
