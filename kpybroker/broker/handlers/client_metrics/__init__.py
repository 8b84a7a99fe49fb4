"""Requests of clients that push their own metrics (KIP-714).

Never here: which subscriptions apply to a client and which pushes are accepted (`core.client_metrics`), and their
configuration (`handlers.configuration`). The way in is `handlers.routes`.
"""
