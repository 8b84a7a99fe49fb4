"""Logins, users, access and quotas as APIs.

Before a login the gate of the listener responds to SaslHandshake and SaslAuthenticate (`broker.security.gate`).
"""
