"""Reporters send the metrics to a server every few seconds, where `/metrics` waits to be asked.

`configured` makes those that the configuration asks for; `periodic.Periodic` runs each of them.

Never here: names and the form of what is sent (`kpybroker.metrics.graphite`, `kpybroker.metrics.otlp`).
"""
