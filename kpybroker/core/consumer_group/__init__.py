"""The consumer groups of KIP-848 as a state machine: epochs, target assignment, reconciliation, patterns, fencing.

`values` are its requests and responses, `records` what it writes (`encoding` its bytes). A group is `state`; a member
is two values, `members`: what it said of itself and what it is assigned, each with a record of its own. Nearly all
comes from `heartbeat`; `reconciliation`, `target` and `patterns` are its parts, `leaving` is how members go. The
reference is Kafka 4.3.1's GroupMetadataManager. `core.group.machine` has the table of all groups.

A member may use the classic protocol: here that is no more than a part of what it said of itself. Never here: I/O,
offsets (they belong to groups of every kind: `core.group`), and the requests of the classic protocol.
"""
