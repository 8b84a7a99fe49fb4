"""The classic group coordinator as a state machine: membership (KIP-345, KIP-394), generations, offsets.

`machine` is the way in; `values` are its requests and replies, `records` what it writes. Inside, one module a
procedure: `joining`, `membership` (sync, heartbeat, leave), `rebalance`, `committing` (commit, fetch, delete, expire).
The reference is Kafka 3.9's GroupCoordinator and GroupMetadataManager (ZooKeeper mode). Groups of KIP-848 are in the
same table (`consumers`). Never here: I/O, and the rules of those (`core.consumer_group`).
"""
