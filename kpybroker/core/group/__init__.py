"""The classic group coordinator as a state machine: membership (KIP-345, KIP-394), generations, offsets.

`machine` is the way in; `values` are its requests and replies, `records` what it writes. Inside, one module a
procedure: `joining`, `membership` (sync, heartbeat, leave), `rebalance`, `committing` (commit, fetch, delete, expire).
The reference is Kafka 3.9's GroupCoordinator and GroupMetadataManager (ZooKeeper mode).

Groups of newer protocols are in the same table (`kinds`). Never here: I/O, and the rules of newer kinds
(`core.modern_group` and its neighbours).
"""
