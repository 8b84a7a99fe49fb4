"""Reads what the other parts count, as Kafka's MBeans, serves it to Prometheus and others, and sends it to Graphite and
OTLP.

`readers` read the parts, `server` is asked, `reporters` send. `metrics.Metrics` has all of them, and lives only in a
broker whose configuration asks for one.

Never here: counting (that is where something happens), names and meanings (`kpybroker.metrics`).
"""
