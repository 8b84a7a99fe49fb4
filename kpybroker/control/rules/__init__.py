"""Request faults as data: what a rule says, which requests it selects, and what its act changes in a response.

`parse.parse` is the one way in for rules from outside. What delays, disconnects and counts is in
`control.requests`. What never lives here: sockets, time, randomness and handlers.
"""
