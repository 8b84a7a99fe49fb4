"""Where replicas are and which of them leads: moves of partitions with a throttle and progress, and elections.

`moves` is what `partition move`, `moves` and `cancel` do, `elections` what `partition elect` does; `plan` says where
replicas go, and `throttle` how fast. What never lives here: a choice of brokers by load.
"""
