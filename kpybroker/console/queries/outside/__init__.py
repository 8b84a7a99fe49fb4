"""What pages ask others than the cluster, over HTTP: the brokers' metrics, and schemas of a registry.

What never lives here: a request whose time or size has no bound, a password in a text.
"""
