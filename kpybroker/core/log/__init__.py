"""What a partition's log knows beyond its bytes: producers and transactions, and what compaction does next.

`producer_state` is the way in for appends (Kafka's ProducerStateManager), `cleaner_plan` for compaction; `cleaner_map`
holds the keys of one cleaning. Never here: files and segments (`kpybroker.storage`).
"""
