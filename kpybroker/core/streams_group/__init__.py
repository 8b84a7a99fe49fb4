"""The streams groups of KIP-1071: topology, internal topics, tasks and who has them.

A streams group is what Kafka Streams 4 uses in place of a consumer group (`group.protocol=streams`). Members send the
topology of the application once; the coordinator finds how many tasks each subtopology has, which internal topics are
missing, and gives tasks to members. The reference is Kafka 4.3.1.

A group is `state`; `core.group.kinds.streams` has those of a machine, and what other protocols' requests mean to them.
Nearly all comes from `heartbeat`: `topics` is what the topology means, `target` who should have which task (by
`sticky_assignor`), `reconciliation` a member's way there, `endpoints` where members have state; `leaving` is how they
go, `commits` who may commit offsets. `values` are requests, responses and settings, `validation` what a heartbeat must
look like, `records` what a group writes (`encoding` its bytes).

Never here: I/O, the creation of topics, and offsets of groups (`core.group`).
"""
