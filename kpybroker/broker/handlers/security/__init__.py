"""Logins, users, access and quotas as APIs.

Before a login the gate of the listener answers SaslHandshake and SaslAuthenticate (`broker.security.gate`).
"""
