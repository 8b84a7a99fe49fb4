"""Requests that append, read, find and delete records.

Never here: the log itself (`kpybroker.storage`) and who leads it (`broker.replication`). The way in is
`handlers.routes`.
"""
