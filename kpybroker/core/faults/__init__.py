"""Request faults as data: what a rule says, which requests it selects, and what its act changes in a response.

`parse.parse` is the one way in for rules from outside. The shell that delays, disconnects and counts is
`broker.interception`. What never lives here: sockets, time, randomness and handlers.
"""
