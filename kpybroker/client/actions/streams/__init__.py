"""Commands on streams groups (KIP-1071): their part of `group`.

What never lives here: requests, which are in `kpybroker.client.connect.groups`, and offsets, which these groups commit
as consumer groups do.
"""
