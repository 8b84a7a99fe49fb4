"""Client metrics (KIP-714): which metrics the brokers ask of which clients, and which pushes they accept.

The way in is `manager.ClientMetricsManager`, Kafka's class of this name without I/O: time, ids and clients are
arguments. `configs` is what a subscription may be, `subscriptions` which of them apply to a client.

Never here: decompression, and what happens to the metrics (`kpybroker.broker.client_metrics`).
"""
