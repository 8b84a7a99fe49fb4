"""Groups that change their protocol while they have members, and classic members of consumer groups.

`upgrade` makes a classic group a consumer group, `downgrade` the other way round; both in one batch of records, the
live part when those are in the log. `classic_members` are the requests of classic members to a consumer group. The
reference is Kafka 4.3.1's GroupMetadataManager. `embedded` reads and writes the bytes that only clients knew before.
"""
