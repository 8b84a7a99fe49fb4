"""Requests about the cluster as a whole: versions, brokers, log directories, elections, reassignments.

Never here: the controller itself (`broker.cluster.controller`). The way in is `handlers.routes`.
"""
