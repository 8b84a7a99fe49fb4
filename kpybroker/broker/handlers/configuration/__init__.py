"""Requests that read and change the configuration of topics, brokers and loggers.

Never here: which keys there are and what they mean (`kpybroker.config`), and where overrides are stored
(`broker.cluster.config_repository`). The way in is `handlers.routes`.
"""
