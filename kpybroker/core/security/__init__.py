"""The rules of security: logins, credentials, access and quotas, as values and pure functions.

Nothing here reads a clock, a file, a socket or a source of randomness: times and random bytes are arguments. The shells
that connect these rules to connections and ZooKeeper are in `kpybroker.broker.security`.
"""
