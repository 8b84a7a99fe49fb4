"""Clients of a broker by the libraries that are installed, and their settings in each library's spelling.

What never lives here: how a broker is reached by the kit itself (`kpybroker.testing.running.channel`). One way in:
`making.Clients`, of which each broker is one.
"""
