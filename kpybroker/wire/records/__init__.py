"""Record batches: headers, records, control markers, legacy message sets, conversion and validation.

`batch` holds what the produce and fetch paths touch and never looks at a record; the other modules walk records and
are reached only where Kafka's answer depends on them. Nothing is re-exported: import the module that is meant.
"""
