"""Requests that create, delete, grow and describe topics.

Never here: the commands themselves (`broker.cluster.topic_admin`). The way in is `handlers.routes`.
"""
