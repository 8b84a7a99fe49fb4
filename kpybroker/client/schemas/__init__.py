"""Schemas of a registry: asked for over HTTP, and the values that are read and written with them.

`registry.Registry` asks, `reading.value_of` decodes. What never lives here: a request whose time or size has no bound,
a password in a text, a client of Kafka.
"""
