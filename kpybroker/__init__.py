"""kpybroker: a Kafka-wire-compatible broker on trio."""

__version__ = "0.1.0"
