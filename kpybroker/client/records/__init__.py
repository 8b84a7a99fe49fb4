"""Records as text and back: formats of output and input, and the offsets to begin and end at.

`record.Record` is what all of them share. What never lives here: a client, a socket, a file.
"""
