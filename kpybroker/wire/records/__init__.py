"""Record batches: headers, records, control markers, legacy message sets, conversion and validation.

Start from `batch`: it has all that the produce and fetch paths need and never reads a record. The other modules read
records, and are used only where Kafka's result depends on them. Nothing is re-exported: import the module you mean.
What never lives here: files, producer state, and the limits of a topic (`append_rules` receives them).
"""
