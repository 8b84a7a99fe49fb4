"""Records in the order of their time: `timeline` decides what is read and shown next, `scan` reads it, `downloads`
writes it. What never lives here: HTTP, HTML.
"""
