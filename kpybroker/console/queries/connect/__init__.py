"""Kafka Connect, asked by its REST: connectors, their tasks, and what their plugins say of their configuration.

Nothing of this asks a broker. What a plugin calls a password, and what is named like one, is hidden before it leaves
this folder (`secrets`). What never lives here: HTML; a change, which is `kpybroker.console.changes.connect`.
"""
