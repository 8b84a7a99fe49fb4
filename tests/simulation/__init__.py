"""A cluster in one process on simulated time: real brokers in a world that one seed decides.

`world` is the way in. `seams` are what brokers are given in place of sockets, disks, the tree, threads and clocks.
Nothing here is imported by the package, and no broker knows that it is simulated.
"""
