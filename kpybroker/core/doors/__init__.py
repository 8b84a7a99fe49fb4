"""What every door to strangers needs, whatever protocol is behind it: connections before a login, and wrong passwords.
(Log lines that strangers can cause: `core.line_limit`.) All are bounded tables; times are arguments, in seconds of a
monotonic clock.

Never here: a protocol, a socket, a password.
"""
