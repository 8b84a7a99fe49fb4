"""Coordinators: groups and transactions, each kept in the partitions of an internal topic that this broker leads.

Lives here: loading such a partition and driving its state machine (`partitions`, `shard`), the coordinators of both
kinds, what consumer groups need of a broker, writing transaction markers, verifying that a partition belongs to a
transaction, and offsets in the tree.

Never here: the rules of groups and transactions (`core.group`, `core.transaction`), the APIs and the creation of the
internal topics (`handlers`).

The way in: `coordinators.Coordinators`, which builds the others when they are first used.
"""
