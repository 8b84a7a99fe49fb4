"""Kafka's wire protocol as text, one `*.spec` file an API or record, and the generator of the message classes.

What never lives here: code that runs in a broker. Start from README.md for the notation, and from `generate` to write
`kpybroker/wire/messages`.
"""
