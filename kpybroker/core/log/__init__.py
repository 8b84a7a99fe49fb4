"""What a partition's log knows beyond its bytes: producers and transactions, and what compaction does next.

`producer_state` is the way in for appends (Kafka's ProducerStateManager), with `producer_append` for the checks;
`cleaner_plan` is that for compaction, and `cleaner_map` holds the keys of one cleaning. Never here: files and segments
(`kpybroker.storage`).
"""
