"""Server-side assignors of consumer groups (KIP-848): who gets which partitions.

Pure functions of the members, what they own, and the partitions of topics; `values` has their signature. The reference
is Kafka 4.3.1's `org.apache.kafka.coordinator.group.assignor`. Like there, racks count for nothing. Never here: epochs,
revocation, and anything else that a group does with a target assignment.
"""
