"""Settings of the whole interpreter, which only the command line makes: its process has a broker and nothing else.

`postponed` puts off loading what a broker at rest does not need, `garbage` tunes collections and the heap. What never
lives here: anything that a broker inside a Python program needs as well.
"""
