"""Share groups (KIP-932) over the wire: a member, and requests about groups, which confluent-kafka has not.

`member.ShareMember` takes records and acknowledges them; `groups` describes groups and moves their offsets. What never
lives here: options of commands, and what is printed.
"""
