"""`/jolokia` on the port of the metrics: MBeans for tools that read Kafka's over HTTP.

Never here: what an MBean is called and what a request means (`kpybroker.metrics.jolokia`).
"""
