"""The classic group coordinator as a pure machine: membership (KIP-345, KIP-394, cooperative or not),
generations, offsets.

`machine` is the way in; `values` are its requests and answers, `records` what it writes. Inside, a procedure a
module: `joining`, `membership` (sync, heartbeat, leave), `rebalance`, `committing` (commit, fetch, delete,
expire). The reference is Kafka 3.9's GroupCoordinator and GroupMetadataManager (ZooKeeper mode). Not here:
KIP-848 groups.
"""
