"""The classic group coordinator as a state machine: membership (KIP-345, KIP-394), generations, offsets.

`machine` is the way in; `values` are its requests and replies, `records` what it writes. Inside, one module a
procedure: `joining`, `membership` (sync, heartbeat, leave), `rebalance`, `committing` (commit, fetch, delete, expire).
The reference is Kafka 3.9's GroupCoordinator and GroupMetadataManager (ZooKeeper mode). Never here: I/O, and KIP-848
groups.
"""
