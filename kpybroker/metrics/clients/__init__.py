"""What clients push about themselves (KIP-714), as values: read from OTLP, kept by client, and written again.

`decoding` reads a push, `table` keeps the last value of each series, `text` writes them for Prometheus and `otlp` for
OTLP receivers. Only `decoding` and `otlp` need the extra `otlp`.

Never here: which clients push what, and when (`kpybroker.broker.client_metrics`); I/O and the clock.
"""
