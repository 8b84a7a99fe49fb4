"""What a machine's groups do that is of one kind only: `classic`, and the newer ones, all of them in `modern`.

`consumers` and `streams` are the members' sides of a `Group`, whose offsets they commit; they say as well what requests
of other protocols mean to them. Share groups have a room and a table of their own (`core.share_group`); of them, only
what requests of other protocols get is here: `share_refusals`.

Never here: the rules of newer kinds (`core.consumer_group`, `core.streams_group`).
"""
