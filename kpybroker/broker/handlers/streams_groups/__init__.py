"""Requests of streams groups (KIP-1071): membership, and what administrators ask of them.

Never here: the state of a group, which is `core.streams_group` behind `broker.coordinators`, and how internal topics
are created (`broker.cluster.streams_topics`). The way in is `handlers.routes`.
"""
