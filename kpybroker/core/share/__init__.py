"""Share groups at a partition's leader (KIP-932): which member holds which records, how often each was delivered.

`partition.SharePartition` is the machine of one group at one partition, and the way in; `values` are what goes in and
out of it. The reference is Kafka 4.3.1's class ``SharePartition``. Never here: I/O, a clock, the log's records, the
state topic (what must be persisted goes out as a `StateWrite`), members and their assignment.
"""
