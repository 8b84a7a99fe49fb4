"""Whether the cluster is well: what the front page says first.

`checks` judges, as pure functions of what was `seen`; `seen` asks the cluster, by Kafka's protocol alone, so it is true
of any Kafka; `memory` keeps what one look cannot know: which brokers were there, and whether a lag grows. What cannot
be known is said, and is never green.
"""
