"""Which of several instances writes: a group of Kafka's group protocol, of type `sr`, as Confluent's registry has it.

`protocol` has what members tell each other, without I/O; `member` is one member. Instances of both registries may be in
one group.
"""
