"""Requests that only brokers send: the controller's orders, ISR changes, producer ids, transaction markers.

All need CLUSTER_ACTION (`checks`). Never here: what an order does to a replica, which is `broker.replication`. The way
in is `handlers.routes`.
"""
