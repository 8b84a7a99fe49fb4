"""The transaction coordinator as a state machine: which producer may write in which transaction, and how it ends.

`machine.TransactionMachine`, for one partition of `__transaction_state`, is the way in; `values` are its requests and
replies, `state` the transitions of one transactional id, `records` the log's format. Never here: I/O, writing markers
(`kpybroker.broker.coordinators`).
"""
