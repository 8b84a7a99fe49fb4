"""Client metrics (KIP-714) around the rules of `core.client_metrics`: subscriptions from the tree, bodies of pushes.

The way in is `service.ClientMetrics`, which hands what clients push to a `receiver.Receiver`.
"""
