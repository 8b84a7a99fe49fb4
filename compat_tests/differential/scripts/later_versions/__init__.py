"""Versions of APIs that Kafka 3.9 does not have, next to Kafka 4.3.1: topic ids, patterns, kinds of resources, flags.

Most scripts are tables: what is asked (`*_PROBES`), in every state of a topic (`kafka_4.topics`).
"""
