"""The share groups of KIP-932 as a state machine: members, epochs, target assignment, and which states there are.

`groups` is the way in; `values` are its requests, responses and effects, `records` what it writes (`encoding` its
bytes). A group is `state`. Nearly all comes from `heartbeat`; `target`, `initializing` and `leaving` are its parts,
`offsets` is what an administrator does. The reference is Kafka 4.3.1's GroupMetadataManager.

A partition is assigned only after its state was initialized by the share coordinator: that is asked for as an effect.
Several members may have one partition, so that nothing is revoked: a member enters the next epoch with its next
heartbeat.

Never here: I/O, the state of a partition itself, and offsets of other groups (`core.group`).
"""
