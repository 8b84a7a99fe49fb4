"""One sentence on every key, one module for each area as in `config.keys`, and the page generated from both.

Never here: what a running broker needs. Nothing of this package is imported at start. Start from `lookup.broker_doc`;
`page` writes the configuration page.
"""
