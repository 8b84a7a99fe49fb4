"""The znode tree: one contract, kept by real ZooKeeper through kazoo, and by an embedded tree.

What never lives here: Kafka's nodes and their values (`kpybroker.wire.znodes`), and decisions (`kpybroker.core`).
Start from `tree.Tree`, the contract; `embedded.EmbeddedStore` and `zookeeper.ZooKeeperTree` make one.
"""
