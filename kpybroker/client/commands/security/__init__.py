"""The commands `acl`, `user` and `quota`: names, options and help.

As everything in `commands`, with click and nothing else. What they do is in `actions.security`.
"""
