"""What groups of the newer protocols have in common (consumer, share and streams groups; Kafka's ModernGroup).

`state` is the base of a group: its epochs, members and targets as its records say, and what lives only here. `members`
is that of a member, `records` values that all kinds write, `encoding` the frame of their bytes. `shared` is what all
groups of one kind share in a machine, `timers` the members' deadlines. `requests` is how a request is refused or gets
its response, `leaving` how members go.

Never here: what only one kind does (`core.consumer_group`, `core.share_group`, `core.streams_group`), and the table of
groups (`core.group`).
"""
