"""Reads what the other parts count, as Kafka's MBeans, and serves it to Prometheus.

`readers` read the parts; `metrics.Metrics` has all of them, and lives only in a broker that has
`kpybroker.metrics.port`.

Never here: counting (that is where something happens), names and meanings (`kpybroker.metrics`).
"""
