"""What pages ask others than the cluster: the brokers' metrics, and processes that evaluate filters.

What never lives here: a request whose time or size has no bound, a password in a text.
"""
