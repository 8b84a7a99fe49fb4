"""The transaction coordinator's rules: who may write in which transaction, and how it ends.

`machine.TransactionMachine` is the log-backed machine of one partition of `__transaction_state`; `state` has the
state automaton, `records` the log's format, `values` what crosses the machine's edge.
"""
