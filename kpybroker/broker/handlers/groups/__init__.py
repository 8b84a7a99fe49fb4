"""Requests of consumer groups: membership, offsets, administration, and who coordinates.

Never here: the state of a group, which is `core.group` behind `broker.coordinators`. The way in is `handlers.routes`.
"""
