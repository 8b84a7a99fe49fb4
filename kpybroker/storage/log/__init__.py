"""The log of one partition: loading, appending, reading, truncating, flushing (Kafka's UnifiedLog).

Nothing here knows other logs or log directories. Start from `log.Log`; each group of its operations is a module of
functions over `log_state.LogState`.
"""
