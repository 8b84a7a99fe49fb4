"""The process that brokers run in: the directory of those that keep nothing, and the end together with another process.

What never lives here: the brokers themselves (`kpybroker.control.hosted`). Each module is used on its own.
"""
