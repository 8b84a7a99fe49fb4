"""Kafka's MBeans as the Jolokia agent serves them: object names, attributes, requests and errors.

Never here: HTTP, and how values are read (`kpybroker.broker.metrics.jolokia`).
"""
