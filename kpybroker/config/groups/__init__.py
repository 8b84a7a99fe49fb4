"""The configuration of one group (resource type GROUP): its keys, and what values they may have.

Never here: the broker's own `group.*` keys (`config.keys.group`), which give the defaults and the bounds, and what a
group does with a value (`core.consumer_group`). The way in is `rules`.
"""
