"""Committed offsets: what one is, and the durable store of a group's."""
