"""The control channel: one to nine brokers of a process, and the methods by which a test looks into and disturbs them.

`hosted` runs the brokers of `kpybroker dev` and of `kpybroker.testing`; `server` responds to HTTP on loopback by the
methods in `methods`, which `catalogue` lists. docs/reference/control.md lists them. What the methods move is in
`levers` (sockets, disk, tree, clock, elections) and in `requests` (faults of requests, and their log) by `rules`.

What never lives here: what a broker does (`kpybroker.broker`), and what a test's program calls (`kpybroker.testing`,
a client of this channel). Without `--control` nothing here but `hosted` is imported.
"""
