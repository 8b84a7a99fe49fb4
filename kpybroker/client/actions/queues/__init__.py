"""Commands on share groups (KIP-932): `topic consume --share-group`, and their part of `group`.

What never lives here: requests, which are in `kpybroker.client.share`.
"""
