"""Requests of share groups: membership, and what administrators ask of them.

Never here: the state of a group, which is `core.share_group` behind `broker.coordinators`, and records, which are
fetched and acknowledged elsewhere. The way in is `handlers.routes`.
"""
