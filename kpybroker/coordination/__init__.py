"""The znode tree: one contract, kept by real ZooKeeper through kazoo, by an embedded tree, and by a faulty wrapper.

What never lives here: Kafka's nodes and their values (`kpybroker.wire.znodes`), and decisions (`kpybroker.core`).
Start from `tree.Tree`, the contract; `embedded.EmbeddedStore` and `zookeeper.ZooKeeperTree` make one.
"""
