"""One segment of a log: its `.log` file, its three indexes, and how segments replace each other (Kafka's LogSegment).

Nothing here knows a whole log, a producer's state or a leader epoch. Start from `segment.LogSegment`, and
`segment_list.LogSegments` for the segments of one log.
"""
