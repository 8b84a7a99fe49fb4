"""What a broker can be asked about itself, as data: Kafka's MBeans, and how Prometheus and others spell their names.

Pure: no I/O, no clock, no event loop. A *family* is one MBean pattern with its meaning (`mbeans`, listed in `tables`).
`broker.metrics` reads the values, as `reading.Reading`s; `text` writes them.

Never here: where a value comes from.
"""
