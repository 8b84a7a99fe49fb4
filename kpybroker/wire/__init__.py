"""Bytes and their meaning: Kafka's messages, record batches and znodes, encoded and decoded.

What never lives here: input and output, clocks, the event loop, and any decision about a request.
Start from `codec` for messages, `records.batch` for record batches, and `znodes` for the coordination tree.
"""
