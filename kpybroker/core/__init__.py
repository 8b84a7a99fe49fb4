"""The rules of a Kafka broker without I/O: state machines and plain functions, which the rooms above drive.

Packages by subject: `controller` (elections, assignments, deletion), `group`, `consumer_group` and `transaction` (the
coordinators), `assignors` (who of a consumer group gets which partitions), `offsets`, `replication` (leader and
follower), `log` (producer state and what to clean). Modules: `machine` (what the log-backed state machines share),
`tree` (operations on znodes), `topic_partition`, `topic_names`, `patterns` (of topic names), `metadata_version`,
`authorizer`, `placement`, `election`, `rate`.

Never here: sockets, files, clocks, randomness, threads, or an event loop. Time and ids are arguments, and what has to
be done in the world is returned as a value.
"""
