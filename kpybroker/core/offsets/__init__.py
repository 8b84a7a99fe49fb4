"""Committed offsets: `values` (one offset, Java's hash and length of strings) and `store` (those of one group).

Never here: requests, retention settings, or the log (`core.group`).
"""
