"""Where replicas are and which of them leads: moves of partitions with a throttle and progress, elections, and balance.

`moves` is what `partition move`, `moves` and `cancel` do, `elections` what `partition elect` does, `balancing` what
`cluster balance` does. `plan` says where replicas go by number, `balance` who leads by load, `loads` measures those;
`throttle` is how fast moves copy.
"""
