"""One sentence on every key, one module for each area as in `config.keys`.

Never here: what a running broker needs. Nothing of this package is imported at start. Start from `lookup.broker_doc`;
`tests.docs.configuration` makes the configuration page from these and the keys.
"""
