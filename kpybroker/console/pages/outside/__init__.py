"""Pages of what is next to the cluster: a schema registry, Kafka Connect, other clusters.

What never lives here: a request to a broker.
"""
