"""The APIs of the share coordinator (KIP-932), 83 to 87, which only brokers ask: one module each, and `serving`, which
they share.

Never here: the state of share partitions, which is `core.share_coordinator` behind `broker.coordinators`. The way in is
`handlers.routes`.
"""
