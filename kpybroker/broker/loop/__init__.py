"""The event loop: its clock, its poller, steps, yielding, and what components may ask of their broker.

Never here: Kafka's protocol, files, replication. The way in is `host.Host`, which every component takes, and
`yielding.YieldBudget` for long loops.
"""
