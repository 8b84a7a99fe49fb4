"""`topic produce`: what it is asked for, the input, the delivery, and topics that are made for records.

`produce.produce` is the way in. What never lives here: how a piece of input becomes a record (`records.lines`).
"""
