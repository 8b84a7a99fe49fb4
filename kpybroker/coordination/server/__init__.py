"""ZooKeeper's own client protocol in front of the embedded tree, as a standalone ZooKeeper 3.8 serves it.

What never lives here: the nodes and what a write does to them (`coordination.image`), and commits (`embedded`). No
clock and no sockets either, except in `serve`, the one way in. Each connection is a `Connection`, each client's session
a `Session`, and `Service` has all of them.
"""
