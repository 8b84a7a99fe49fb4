"""Groups as the protocol has them, where librdkafka makes nothing of them: listed by type, and described.

`raw_groups` is any group by DescribeGroups, and the values that all have; `consumer_groups` and `streams_groups` are
those kinds, `listing` finds the kinds that librdkafka does not list. Share groups are a room of their own,
`kpybroker.client.share`. Never here: what commands print.
"""
