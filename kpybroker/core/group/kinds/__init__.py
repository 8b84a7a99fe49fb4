"""The kinds of groups that a machine has next to classic groups, as far as they are `Group`s with offsets: `streams`.

Never here: the rules of a kind, which are a room of their own in `core`.
"""
