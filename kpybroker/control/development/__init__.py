"""Brokers for development and tests: their plans, their security, and what clients of them set.

`kpybroker dev` and `kpybroker.testing` share these, so that a test's broker is the one that a developer has seen. What
never lives here: the banner and the options of the command (`kpybroker.cli`). Nothing is imported until it is needed:
the certificates take a cryptography library.
"""
